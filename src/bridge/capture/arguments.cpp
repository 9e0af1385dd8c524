#include "bridge/capture/arguments.h"

#include "bridge/capture/sym_node.h"

namespace cresset::bridge {

graph::ValueId value_of(Capture& capture, const at::Tensor& tensor) {
  if (TraceTensor* trace = TraceTensor::from(tensor)) return capture.value_of(*trace);
  const at::Tensor lifted = capture.lift(tensor);
  return capture.value_of(*TraceTensor::from(lifted));
}

std::optional<size_t> storage_offset_argument(const c10::FunctionSchema& schema) {
  const auto& arguments = schema.arguments();
  const std::optional<int> found = schema.argumentIndexWithName("storage_offset");
  const bool of_tensor = !arguments.empty() && arguments[0].type()->kind() == c10::TypeKind::TensorType;
  return found && of_tensor ? std::optional<size_t>(*found) : std::nullopt;
}

void count_from_storage(torch::jit::Stack& arguments, size_t offset) {
  if (offset < arguments.size() && arguments[offset].isInt())
    arguments[offset] = arguments[offset].toInt() + arguments[0].toTensor().storage_offset();
}

namespace {

sym::ExprId integer(Capture& capture, const c10::IValue& value) {
  if (value.isSymInt()) return SymNode::expr_of(capture.env_ptr(), value.toSymInt());
  return capture.env().pool().constant(value.toInt());
}

// The value of a float without a known number (SymNode::tensor_of), where a tensor may take its place.
std::optional<graph::ValueId> float_value(Capture& capture, const c10::IValue& value) {
  if (!value.isSymFloat() || !value.toSymFloat().is_symbolic()) return std::nullopt;
  // The conversion may run operators, which use float_numbers.
  std::vector<graph::ValueId> so_far = std::exchange(capture.float_numbers, {});
  const at::Tensor tensor = SymNode::operand_of(value.toSymFloat().toSymNodeImpl());
  capture.float_numbers = std::move(so_far);
  if (!tensor.defined()) return std::nullopt;
  capture.float_numbers.push_back(value_of(capture, tensor));
  return capture.float_numbers.back();
}

graph::Arg scalar(Capture& capture, const c10::IValue& value) {
  if (value.isInt()) return integer(capture, value);
  if (value.isSymInt()) {
    const sym::ExprId number = integer(capture, value);
    SymNode::keep_in_int64(capture.env(), number);
    return number;
  }
  if (value.isDouble()) return value.toDouble();
  if (value.isBool()) return value.toBool();
  if (value.isSymFloat()) return value.toSymFloat().guard_float(__FILE__, __LINE__);
  if (value.isSymBool()) return value.toSymBool().guard_bool(__FILE__, __LINE__);
  abort_capture(BreakKind::UnsupportedOperator, "a complex number argument");
}

std::vector<graph::OptionalValue> tensors(Capture& capture, const c10::IValue& value) {
  std::vector<graph::OptionalValue> out;
  for (const c10::IValue& v : value.toListRef()) {
    const bool defined = v.isTensor() && v.toTensor().defined();
    out.push_back(defined ? graph::OptionalValue(value_of(capture, v.toTensor())) : std::nullopt);
  }
  return out;
}

// Whether the tensor wraps a Python number, which does not promote dtypes within its category.
bool is_number(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->is_wrapped_number() && TraceTensor::from(tensor) == nullptr &&
         !tensor.is_complex();  // a complex number is a constant and stays a number
}

c10::IValue number_inside(Capture& capture, const at::Tensor& tensor) {
  if (const std::optional<at::Scalar> number = capture.client().symbolic_number(tensor)) return *number;
  const Capture::StepAside aside;
  return tensor.item();
}

}  // namespace

graph::Arg to_graph(Capture& capture, const c10::IValue& value, ArgType type) {
  if (value.isNone()) return graph::None{};
  switch (type) {
    case ArgType::Tensor:
      if (!value.toTensor().defined()) return graph::None{};
      if (is_number(value.toTensor())) {
        const c10::IValue number = number_inside(capture, value.toTensor());
        if (const auto tensor = float_value(capture, number)) return *tensor;
        return scalar(capture, number);
      }
      return value_of(capture, value.toTensor());
    case ArgType::TensorList:
    case ArgType::OptionalTensorList:
      return tensors(capture, value);
    case ArgType::Int:
      return integer(capture, value);
    case ArgType::IntList: {
      std::vector<sym::ExprId> out;
      if (value.isIntList()) {
        const c10::List<int64_t> numbers = value.toIntList();
        out.reserve(numbers.size());
        for (size_t i = 0; i < numbers.size(); ++i) out.push_back(capture.env().pool().constant(numbers.get(i)));
      } else {
        const c10::ArrayRef<c10::IValue> numbers = value.toListRef();
        out.reserve(numbers.size());
        for (const c10::IValue& v : numbers) out.push_back(integer(capture, v));
      }
      return out;
    }
    case ArgType::Float:  // read from the tensor when the operator is called, in double
      if (const auto tensor = float_value(capture, value)) return capture.float_numbers.pop_back(), *tensor;
      return value.isSymFloat() ? value.toSymFloat().guard_float(__FILE__, __LINE__) : value.toDouble();
    case ArgType::FloatList:
      return value.toDoubleVector();
    case ArgType::Bool:
      return value.isSymBool() ? value.toSymBool().guard_bool(__FILE__, __LINE__) : value.toBool();
    case ArgType::BoolList: {
      std::vector<bool> out;
      for (const bool b : value.toBoolList()) out.push_back(b);
      return out;
    }
    case ArgType::Scalar:
      return scalar(capture, value);
    case ArgType::String:
      return std::string(value.toStringRef());
    case ArgType::DType: {
      const std::optional<DType> dtype = from_torch(value.toScalarType());
      if (!dtype) abort_capture(BreakKind::UnsupportedDtype, "a dtype that graphs do not represent");
      return *dtype;
    }
    case ArgType::Layout:
      if (value.toLayout() != c10::kStrided)
        abort_capture(BreakKind::UnsupportedLayout, "a layout that is not strided");
      return graph::StridedLayout{};
    case ArgType::Device: {
      const std::optional<graph::Device> device = from_torch(value.toDevice());
      if (!device) abort_capture(BreakKind::UnsupportedDevice, "a device that graphs do not represent");
      return *device;
    }
    case ArgType::MemoryFormat:
      return from_torch(value.toMemoryFormat());
    case ArgType::Generator:
      abort_capture(BreakKind::RandomNumbers, "an explicit random generator");
    case ArgType::Other:
      abort_capture(BreakKind::UnsupportedOperator, "an argument type that graphs do not represent");
  }
  abort_capture(BreakKind::UnsupportedOperator, "an argument type that graphs do not represent");
}

}  // namespace cresset::bridge

#include "bridge/capture/python_meta.h"

#include <ATen/EmptyTensor.h>

#include <algorithm>
#include <mutex>
#include <sstream>
#include <unordered_map>

#include "bridge/aten/dtypes.h"
#include "bridge/capture/arguments.h"
#include "bridge/capture/graph_cut.h"
#include "ops/pointwise_types.h"
#include "ops/result_types.h"

namespace cresset::bridge {
namespace {

// The dispatcher tells where each kernel was registered: "Meta: registered at <file>:<line> :: ...", the active kernel
// first. An operator without a meta kernel is composite, and some of its operators have Python meta kernels.
bool asks_python(const c10::OperatorHandle& handle) {
  if (!handle.schema().name().starts_with("aten::") && !handle.schema().name().starts_with("cresset::")) return false;
  std::istringstream lines(handle.dumpState());
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("Meta: ")) return line.find(".py:") != std::string::npos;
  return true;
}

bool is_number(Capture& capture, graph::ValueId id) {
  const graph::Value& value = capture.graph().value(id);
  return value.kind == graph::Value::Kind::Constant &&
         capture.recorder().constant(value).unsafeGetTensorImpl()->is_wrapped_number();
}

// The result dtype for small column-major matrices (0-dim tensors stay 0-dim). TensorIterator keeps this order. An
// operator which does not keep it makes strides of its own.
std::optional<DType> dtype_made(Capture& capture, const c10::OperatorHandle& handle,
                                const std::vector<graph::Arg>& args) {
  const std::vector<int64_t> sizes = {2, 3}, strides = {1, 2};
  bool ordered = false;
  const auto tensor = [&](graph::ValueId id) {
    if (is_number(capture, id)) return capture.recorder().constant(capture.graph().value(id));
    const graph::TensorType& type = capture.graph().type(id);
    const bool is_matrix = type.rank() > 0;
    ordered = ordered || is_matrix;
    at::Tensor made(is_matrix ? at::detail::empty_strided_cpu(sizes, strides, to_torch(type.dtype))
                              : at::detail::empty_cpu({}, to_torch(type.dtype)));
    return made.fill_(1);  // an operator may divide integers by it
  };
  const auto number = [&](sym::ExprId e) {
    const std::optional<int64_t> hint = capture.env().hint(e);
    TORCH_CHECK(hint.has_value(), "a number that only data gives");
    return *hint;
  };
  const Capture::StepAside aside;
  const c10::impl::ExcludeDispatchKeyGuard no_casts(c10::autocast_dispatch_keyset);  // as in programs
  try {
    torch::jit::Stack stack;
    for (size_t i = 0; i < args.size(); ++i)
      stack.push_back(to_torch(args[i], arg_type(handle.schema().arguments()[i]), tensor, number));
    handle.callBoxed(stack);
    const at::Tensor result = stack.at(0).toTensor();
    if (ordered && (result.sizes() != c10::IntArrayRef(sizes) || result.strides() != c10::IntArrayRef(strides)))
      return std::nullopt;
    return from_torch(result.scalar_type());
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

// The dtype to which operands are converted first.
DType common_dtype(Capture& capture, const std::vector<graph::Arg>& args, const std::vector<size_t>& operands,
                   DType made) {
  const DType promoted =
      ops::result_dtype(capture.graph(), ops::OpArgs(capture.graph(), args), operands, capture.default_dtype);
  return is_integral(promoted) && !is_integral(made) ? made : promoted;
}

bool is_value(const graph::Arg& arg) { return std::holds_alternative<graph::ValueId>(arg); }
bool is_none(const graph::Arg& arg) { return std::holds_alternative<graph::None>(arg); }

bool has_memory(Capture& capture, const graph::Arg& arg) {
  return !is_value(arg) || capture.graph().type(std::get<graph::ValueId>(arg)).device.kind != graph::DeviceKind::Meta;
}

}  // namespace

bool asks_python_for_sizes(const c10::OperatorHandle& handle) {
  static std::mutex mutex;
  static auto* const known = new std::unordered_map<std::string, bool>;
  const std::string name = handle.schema().name() + "." + handle.schema().overload_name();
  const std::lock_guard lock(mutex);
  if (const auto found = known->find(name); found != known->end()) return found->second;
  return known->emplace(name, asks_python(handle)).first->second;
}

std::optional<graph::TensorType> pointwise_type(Capture& capture, const c10::OperatorHandle& handle, graph::OpId op,
                                                const std::vector<graph::Arg>& args) {
  if (!handle.hasTag(at::Tag::pointwise) || is_random(op) || handle.schema().is_mutable()) return std::nullopt;
  if (handle.schema().returns().size() != 1 || arg_type(handle.schema().returns()[0]) != ArgType::Tensor)
    return std::nullopt;
  std::vector<size_t> operands;
  for (size_t i = 0; i < args.size(); ++i) {
    if (std::holds_alternative<std::vector<graph::OptionalValue>>(args[i])) return std::nullopt;
    // A number in the place of a tensor is a tensor without dimensions, which decides strides, too.
    const bool is_number = arg_type(handle.schema().arguments()[i]) == ArgType::Tensor && !is_none(args[i]);
    if (is_value(args[i]) || is_number) operands.push_back(i);
  }
  if (std::none_of(operands.begin(), operands.end(), [&](size_t i) { return is_value(args[i]); }) ||
      !std::all_of(operands.begin(), operands.end(), [&](size_t i) { return has_memory(capture, args[i]); }))
    return std::nullopt;
  const std::optional<DType> made = dtype_made(capture, handle, args);
  if (!made) return std::nullopt;
  ops::ShapeContext shapes(capture.graph(), graph::op_name(op));
  const ops::OpArgs seen(capture.graph(), args);
  Result<ops::Types> types =
      ops::pointwise_result(shapes, seen, operands, common_dtype(capture, args, operands, *made), *made);
  if (!types.ok()) return std::nullopt;
  types->front().device = ops::device_of_results(capture.graph(), graph::op_name(op), args);
  return std::move(types->front());
}

namespace {

bool has_cpu_kernel(const c10::OperatorHandle& handle) {
  return handle.hasKernelForDispatchKey(c10::DispatchKey::CPU) ||
         handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
         handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional);
}

}  // namespace

double work_of(Capture& capture, const std::vector<graph::Arg>& args,
               const std::function<int64_t(sym::ExprId)>& value) {
  double elements = 0, numbers = 1;
  const auto count = [&](const std::vector<sym::ExprId>& es) {
    double product = 1;
    for (const sym::ExprId e : es) product *= static_cast<double>(std::max<int64_t>(value(e), 1));
    return product;
  };
  for (const graph::Arg& arg : args) {
    if (const auto* id = std::get_if<graph::ValueId>(&arg)) elements += count(capture.graph().type(*id).sizes);
    if (const auto* e = std::get_if<sym::ExprId>(&arg)) numbers *= count({*e});
    if (const auto* es = std::get_if<std::vector<sym::ExprId>>(&arg)) numbers *= count(*es);
    if (const auto* values = std::get_if<std::vector<graph::OptionalValue>>(&arg))
      for (const graph::OptionalValue& v : *values)
        if (v) elements += count(capture.graph().type(*v).sizes);
  }
  return std::max(elements, numbers);
}

// Internal operators divide by sizes which their callers have checked.
static bool has_no_elements(Capture& capture, const std::vector<graph::Arg>& args) {
  bool found = false;
  graph::Graph::for_each_value(args, [&](const graph::ValueId& v) {
    for (const sym::ExprId e : capture.graph().type(v).sizes) found = found || capture.env().hint_or(e, 1) == 0;
  });
  return found;
}

bool runs_for_sizes(Capture& capture, const c10::OperatorHandle& handle, graph::OpId op,
                    const std::vector<graph::Arg>& args, const graph::Device& device) {
  if (device.kind == graph::DeviceKind::Meta || !has_cpu_kernel(handle) || !asks_python_for_sizes(handle)) return false;
  if (handle.schema().returns().empty()) return false;  // called for a side effect
  const ops::Checks checks = checks_of(handle, op);
  if (checks == ops::Checks::Nothing || (checks == ops::Checks::NoSizes && has_no_elements(capture, args)))
    return false;
  return work_of(capture, args, [&](sym::ExprId e) { return capture.env().hint_or(e, 1); }) <= kLittleWork;
}

// Torch's names tell about operators without a row: a leading underscore marks operators which other operators of torch
// call with sizes that they have checked.
ops::Checks checks_of(const c10::OperatorHandle& handle, graph::OpId op) {
  if (const ops::Checks known = ops::traits(op).checks; known != ops::Checks::ByName) return known;
  const std::string& name = handle.schema().name();
  if (name.find("backward") != std::string::npos) return ops::Checks::Nothing;
  const auto& arguments = handle.schema().arguments();
  const auto tensors = std::count_if(arguments.begin(), arguments.end(), [](const c10::Argument& argument) {
    return arg_type(argument) == ArgType::Tensor;
  });
  return name.starts_with("aten::_") && tensors > 1 ? ops::Checks::NoSizes : ops::Checks::Everything;
}

}  // namespace cresset::bridge

#include "bridge/decompositions/complex_scalars.h"

#include <ATen/Functions.h>
#include <ATen/ScalarOps.h>

#include <string_view>
#include <unordered_map>

#include "bridge/decompositions/float_scalars.h"

namespace cresset::bridge {
namespace {

class Call {
 public:
  Call(const torch::jit::Stack& stack, size_t count) : stack_(stack), count_(count) {}

  const c10::IValue& argument(size_t i) const { return stack_[stack_.size() - count_ + i]; }
  at::Tensor tensor(size_t i) const { return argument(i).toTensor(); }
  // As a wrapped number: the other operand keeps its precision.
  at::Tensor number(size_t i) const { return at::native::wrapped_scalar_tensor(argument(i).toScalar()); }
  // In the dtype of the tensor to which it is written.
  at::Tensor number(size_t i, at::ScalarType dtype) const {
    return at::scalar_to_tensor(argument(i).toScalar()).to(dtype);
  }
  at::Tensor product(size_t i, size_t k) const {
    const c10::complex<double> both =
        argument(i).toScalar().toComplexDouble() * argument(k).toScalar().toComplexDouble();
    return at::native::wrapped_scalar_tensor(both);
  }
  bool is_complex(size_t i) const { return tensor(i).is_complex(); }

  std::optional<at::Tensor> filled(size_t number_at, const c10::IValue& sizes, at::ScalarType otherwise) const {
    const c10::IValue& given = argument(number_at + 1);
    const at::ScalarType dtype = given.isNone() ? otherwise : given.toScalarType();
    if (!argument(number_at).isComplexDouble() || !at::isComplexType(dtype)) return std::nullopt;
    return repeated_to(number(number_at, dtype), sizes);
  }

 private:
  const torch::jit::Stack& stack_;
  size_t count_;
};

using Written = std::optional<at::Tensor>;
using ComplexRule = Written (*)(const Call&);

Written written(const Call& c, size_t number_at) {
  return c.is_complex(0) ? Written(c.number(number_at, c.tensor(0).scalar_type())) : std::nullopt;
}

const std::unordered_map<std::string_view, ComplexRule>& rules_of_complex() {
  static const std::unordered_map<std::string_view, ComplexRule> table = {
      {"aten::mul.Scalar", [](const Call& c) { return Written(at::mul(c.tensor(0), c.number(1))); }},
      {"aten::div.Scalar", [](const Call& c) { return Written(at::div(c.tensor(0), c.number(1))); }},
      {"aten::add.Scalar", [](const Call& c) { return Written(at::add(c.tensor(0), c.product(1, 2))); }},
      {"aten::sub.Scalar", [](const Call& c) { return Written(at::sub(c.tensor(0), c.product(1, 2))); }},
      {"aten::rsub.Scalar",
       [](const Call& c) { return Written(at::sub(c.number(1), at::mul(c.tensor(0), c.number(2)))); }},
      {"aten::add.Tensor",
       [](const Call& c) { return Written(at::add(c.tensor(0), at::mul(c.tensor(1), c.number(2)))); }},
      {"aten::sub.Tensor",
       [](const Call& c) { return Written(at::sub(c.tensor(0), at::mul(c.tensor(1), c.number(2)))); }},
      {"aten::addcmul",
       [](const Call& c) {
         return Written(at::add(c.tensor(0), at::mul(at::mul(c.tensor(1), c.tensor(2)), c.number(3))));
       }},
      {"aten::addcdiv",
       [](const Call& c) {
         return Written(at::add(c.tensor(0), at::mul(at::div(c.tensor(1), c.tensor(2)), c.number(3))));
       }},
      {"aten::pow.Tensor_Scalar", [](const Call& c) { return Written(at::pow(c.tensor(0), c.number(1))); }},
      {"aten::pow.Scalar", [](const Call& c) { return Written(at::pow(c.number(0), c.tensor(1))); }},
      {"aten::eq.Scalar", [](const Call& c) { return Written(at::eq(c.tensor(0), c.number(1))); }},
      {"aten::ne.Scalar", [](const Call& c) { return Written(at::ne(c.tensor(0), c.number(1))); }},
      {"aten::where.ScalarOther",
       [](const Call& c) { return Written(at::where(c.tensor(0), c.tensor(1), c.number(2))); }},
      {"aten::where.ScalarSelf",
       [](const Call& c) { return Written(at::where(c.tensor(0), c.number(1), c.tensor(2))); }},
      {"aten::masked_fill.Scalar",
       [](const Call& c) {
         const Written value = written(c, 2);
         return value ? Written(at::masked_fill(c.tensor(0), c.tensor(1), *value)) : value;
       }},
      {"aten::fill_.Scalar", [](const Call& c) { return written(c, 1); }},
      {"aten::full",
       [](const Call& c) {
         return c.filled(1, c.argument(0), at::toComplexType(at::get_default_dtype_as_scalartype()));
       }},
      {"aten::scalar_tensor",
       [](const Call& c) {
         const bool held = c.argument(1).isInt() && at::isComplexType(c.argument(1).toScalarType());
         return held ? Written(c.number(0, c.argument(1).toScalarType())) : std::nullopt;
       }},
      {"aten::full_like",
       [](const Call& c) {
         if (!c.is_complex(0) || !c.argument(2).isNone()) return Written();
         const c10::IValue& format = c.argument(6);
         const auto kept = format.isNone() ? std::nullopt : std::optional(format.toMemoryFormat());
         return Written(at::empty_like(c.tensor(0), {}, kept).copy_(*written(c, 1)));
       }},
      {"aten::new_full", [](const Call& c) { return c.filled(2, c.argument(1), c.tensor(0).scalar_type()); }},
  };
  return table;
}

}  // namespace

std::optional<at::Tensor> with_complex_tensors(const std::string& name, const torch::jit::Stack& stack, size_t count) {
  const Call call(stack, count);
  for (size_t i = 0; i < count; ++i) {
    const c10::IValue& given = call.argument(i);
    if (given.isTensor() && given.toTensor().defined() && !given.toTensor().is_cpu()) return std::nullopt;
    if (given.isDevice() && !given.toDevice().is_cpu()) return std::nullopt;
  }
  const auto rule = rules_of_complex().find(rules_of_complex().count(name) != 0 ? name : functional_name(name));
  return rule == rules_of_complex().end() ? std::nullopt : rule->second(call);
}

}  // namespace cresset::bridge

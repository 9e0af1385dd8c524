#include "bridge/decompositions/float_scalars.h"

#include <ATen/OpMathType.h>
#include <ATen/ops/add.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/expm1.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/le.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/where.h>

#include <string_view>
#include <unordered_map>

#include "bridge/capture/sym_node.h"

namespace cresset::bridge {
namespace {

class Rewrite {
 public:
  Rewrite(const torch::jit::Stack& stack, size_t count) : stack_(stack), count_(count) {}

  const c10::IValue& argument(size_t i) const { return stack_[stack_.size() - count_ + i]; }
  at::Tensor tensor(size_t i) const { return argument(i).toTensor(); }
  at::Tensor self() const { return tensor(0); }

  // Argument i in self's dtype, as in eager mode's kernel. Undefined for None.
  at::Tensor number(size_t i) const { return number(i, self().scalar_type()); }
  at::Tensor number(size_t i, at::ScalarType dtype) const {
    const c10::IValue& value = argument(i);
    if (value.isNone()) return {};
    if (value.isSymFloat())
      if (const at::Tensor made = SymNode::operand_of(value.toSymFloat().toSymNodeImpl()); made.defined())
        return made.to(dtype);
    if (value.isSymFloat()) return at::scalar_tensor(value.toSymFloat().guard_float(__FILE__, __LINE__), dtype);
    return at::scalar_tensor(value.toScalar(), at::TensorOptions(dtype));
  }

  // Whether tensors can replace the numbers among the arguments: symbolic floats beside a floating-point tensor.
  bool applies(size_t self_position) const {
    const c10::IValue& given = argument(self_position);
    if (!given.isTensor() || !given.toTensor().defined() || !at::isFloatingType(given.toTensor().scalar_type()))
      return false;
    for (size_t i = 0; i < count_; ++i)
      if (argument(i).isSymFloat())
        if (SymNode::operand_of(argument(i).toSymFloat().toSymNodeImpl()).defined()) return true;
    return false;
  }

  // self + alpha * other, or self - alpha * other.
  std::optional<at::Tensor> scaled_sum(bool adds) const {
    const at::Tensor other = tensor(1);
    if (other.unsafeGetTensorImpl()->is_wrapped_number()) return std::nullopt;
    const at::ScalarType common = at::result_type(self(), other), wide = at::toOpMathType(common);
    const at::Tensor scaled = at::mul(other.to(wide), number(2, wide));
    return (adds ? at::add(self().to(wide), scaled) : at::sub(self().to(wide), scaled)).to(common);
  }
  // self + value * first (by or over) second, of the same dtype.
  std::optional<at::Tensor> with_product(bool divides) const {
    const at::Tensor first = tensor(1), second = tensor(2);
    const at::ScalarType dtype = self().scalar_type(), wide = at::toOpMathType(dtype);
    if (first.scalar_type() != dtype || second.scalar_type() != dtype) return std::nullopt;
    const at::Tensor scaled = at::mul(first.to(wide), number(3, wide));
    const at::Tensor term = divides ? at::div(scaled, second.to(wide)) : at::mul(scaled, second.to(wide));
    return at::add(self().to(wide), term).to(dtype);
  }
  // self and a number, as in calls from C++ code.
  template <at::Tensor (*op)(const at::Tensor&, const at::Tensor&)>
  std::optional<at::Tensor> with_number() const {
    const at::ScalarType dtype = self().scalar_type(), wide = at::toOpMathType(dtype);
    if (count_ > 2 && !(argument(2).isInt() && argument(2).toInt() == 1)) return std::nullopt;
    return op(self().to(wide), number(1, wide)).to(dtype);
  }
  std::optional<at::Tensor> reversed_difference() const {
    if (!argument(2).isInt() || argument(2).toInt() != 1) return std::nullopt;
    const at::ScalarType wide = at::toOpMathType(self().scalar_type());
    return at::sub(number(1, wide), self().to(wide)).to(self().scalar_type());
  }
  // Tensor or number i in the dtype in which eager mode's kernels compute; result() converts back to the dtype of
  // tensor 0.
  at::Tensor operand(size_t i) const { return tensor(i).to(at::toOpMathType(self().scalar_type())); }
  at::Tensor factor(size_t i) const { return number(i, at::toOpMathType(self().scalar_type())); }
  at::Tensor result(const at::Tensor& computed) const { return computed.to(self().scalar_type()); }

 private:
  const torch::jit::Stack& stack_;
  size_t count_;
};

// ---- activations, and their derivatives: (gradient, self or result, ...)

std::optional<at::Tensor> leaky(const Rewrite& r) {
  const at::Tensor x = r.operand(0);
  return r.result(at::where(x.gt(0), x, x.mul(r.factor(1))));
}
std::optional<at::Tensor> leaky_backward(const Rewrite& r) {
  const at::Tensor gradient = r.operand(0);
  return r.result(at::where(r.operand(1).gt(0), gradient, gradient.mul(r.factor(2))));
}

// (self, alpha, scale, input_scale)
std::optional<at::Tensor> elu(const Rewrite& r) {
  const at::Tensor x = r.operand(0), scale = r.factor(2);
  const at::Tensor below = at::expm1(x.mul(r.factor(3))).mul(r.factor(1).mul(scale));
  return r.result(at::where(x.lt(0), below, x.mul(scale)));
}
// (gradient, alpha, scale, input_scale, is_result, self)
std::optional<at::Tensor> elu_backward(const Rewrite& r) {
  if (r.argument(4).toBool()) return std::nullopt;
  const at::Tensor gradient = r.operand(0), x = r.operand(5), scale = r.factor(2), inner = r.factor(3);
  const at::Tensor below = gradient.mul(inner).mul(r.factor(1).mul(scale)).mul(at::exp(x.mul(inner)));
  return r.result(at::where(x.le(0), below, gradient.mul(scale)));
}

// (self, beta, threshold)
std::optional<at::Tensor> softplus(const Rewrite& r) {
  const at::Tensor x = r.operand(0), beta = r.factor(1), scaled = x.mul(beta);
  return r.result(at::where(scaled.gt(r.factor(2)), x, at::log1p(at::exp(scaled)).div(beta)));
}
std::optional<at::Tensor> softplus_backward(const Rewrite& r) {
  const at::Tensor gradient = r.operand(0), scaled = r.operand(1).mul(r.factor(2)), z = at::exp(scaled);
  return r.result(at::where(scaled.gt(r.factor(3)), gradient, gradient.mul(z).div(z.add(1))));
}

// (self, least, greatest)
std::optional<at::Tensor> hardtanh(const Rewrite& r) {
  return at::clamp(r.self(), std::optional(r.number(1)), std::optional(r.number(2)));
}
std::optional<at::Tensor> hardtanh_backward(const Rewrite& r) {
  const at::Tensor x = r.operand(1);
  return at::where(x.le(r.factor(2)).logical_or(x.ge(r.factor(3))), 0, r.self());
}

// (self, threshold, value)
std::optional<at::Tensor> threshold(const Rewrite& r) {
  return at::where(r.operand(0).le(r.factor(1)), r.number(2), r.self());
}
std::optional<at::Tensor> threshold_backward(const Rewrite& r) {
  return at::where(r.operand(1).le(r.factor(2)), 0, r.self());
}

std::optional<at::Tensor> hardshrink(const Rewrite& r) {
  const at::Tensor x = r.operand(0), bound = r.factor(1);
  return at::where(x.ge(bound.neg()).logical_and(x.le(bound)), 0, r.self());
}
std::optional<at::Tensor> shrink_backward(const Rewrite& r) {
  const at::Tensor x = r.operand(1), bound = r.factor(2);
  return at::where(x.ge(bound.neg()).logical_and(x.le(bound)), 0, r.self());
}

using RuleOfFloats = std::optional<at::Tensor> (*)(const Rewrite&);

const std::unordered_map<std::string_view, RuleOfFloats>& rules_of_floats() {
  static const std::unordered_map<std::string_view, RuleOfFloats> table = {
      {"aten::masked_fill.Scalar",
       [](const Rewrite& r) { return std::optional(at::masked_fill(r.self(), r.tensor(1), r.number(2))); }},
      {"aten::fill_.Scalar", [](const Rewrite& r) { return std::optional(r.number(1)); }},
      {"aten::rsub.Scalar", [](const Rewrite& r) { return r.reversed_difference(); }},
      {"aten::add.Tensor", [](const Rewrite& r) { return r.scaled_sum(true); }},
      {"aten::sub.Tensor", [](const Rewrite& r) { return r.scaled_sum(false); }},
      {"aten::add.Scalar", [](const Rewrite& r) { return r.with_number<&add_tensors>(); }},
      {"aten::sub.Scalar", [](const Rewrite& r) { return r.with_number<&subtract_tensors>(); }},
      {"aten::mul.Scalar", [](const Rewrite& r) { return r.with_number<&multiply_tensors>(); }},
      {"aten::div.Scalar", [](const Rewrite& r) { return r.with_number<&divide_tensors>(); }},
      {"aten::addcdiv", [](const Rewrite& r) { return r.with_product(true); }},
      {"aten::addcmul", [](const Rewrite& r) { return r.with_product(false); }},
      {"aten::clamp",
       [](const Rewrite& r) {
         return std::optional(at::clamp(r.self(), std::optional(r.number(1)), std::optional(r.number(2))));
       }},
      {"aten::clamp_min",
       [](const Rewrite& r) {
         return std::optional(at::clamp(r.self(), std::optional(r.number(1)), std::optional<at::Tensor>()));
       }},
      {"aten::clamp_max",
       [](const Rewrite& r) {
         return std::optional(at::clamp(r.self(), std::optional<at::Tensor>(), std::optional(r.number(1))));
       }},
      {"aten::pow.Tensor_Scalar", [](const Rewrite& r) { return std::optional(at::pow(r.self(), r.number(1))); }},
      {"aten::lerp.Scalar",
       [](const Rewrite& r) { return std::optional(at::lerp(r.self(), r.tensor(1), r.number(2))); }},
      {"aten::remainder.Scalar", [](const Rewrite& r) { return std::optional(at::remainder(r.self(), r.number(1))); }},
      {"aten::leaky_relu", leaky},
      {"aten::leaky_relu_backward", leaky_backward},
      {"aten::elu", elu},
      {"aten::elu_backward", elu_backward},
      {"aten::softplus", softplus},
      {"aten::softplus_backward", softplus_backward},
      {"aten::hardtanh", hardtanh},
      {"aten::hardtanh_backward", hardtanh_backward},
      {"aten::threshold", threshold},
      {"aten::threshold_backward", threshold_backward},
      {"aten::hardshrink", hardshrink},
      {"aten::hardshrink_backward", shrink_backward},
      {"aten::eq.Scalar", [](const Rewrite& r) { return std::optional(at::eq(r.self(), r.number(1))); }},
      {"aten::ne.Scalar", [](const Rewrite& r) { return std::optional(at::ne(r.self(), r.number(1))); }},
      {"aten::gt.Scalar", [](const Rewrite& r) { return std::optional(at::gt(r.self(), r.number(1))); }},
      {"aten::ge.Scalar", [](const Rewrite& r) { return std::optional(at::ge(r.self(), r.number(1))); }},
      {"aten::lt.Scalar", [](const Rewrite& r) { return std::optional(at::lt(r.self(), r.number(1))); }},
      {"aten::le.Scalar", [](const Rewrite& r) { return std::optional(at::le(r.self(), r.number(1))); }},
  };
  return table;
}

// The number at `position` as a 0-dim tensor, in the dtype at `position` + 1; layout and device follow. Undefined: the
// concrete number is needed.
at::Tensor filling(const Rewrite& r, size_t position, at::ScalarType otherwise) {
  const c10::IValue &number = r.argument(position), &device = r.argument(position + 3);
  if (!number.isSymFloat() || (!device.isNone() && !device.toDevice().is_cpu())) return {};
  const c10::IValue& given = r.argument(position + 1);
  const at::ScalarType dtype = given.isNone() ? otherwise : given.toScalarType();
  if (!at::isFloatingType(dtype)) return {};
  const at::Tensor made = SymNode::operand_of(number.toSymFloat().toSymNodeImpl());
  return made.defined() ? made.to(dtype) : made;
}

std::optional<at::Tensor> of_sizes(const at::Tensor& number, const c10::IValue& sizes) {
  return number.defined() ? std::optional(repeated_to(number, sizes)) : std::nullopt;
}

// Operators which make a tensor from a number.
std::optional<at::Tensor> filled(const std::string& name, const Rewrite& r) {
  const at::ScalarType standard = at::get_default_dtype_as_scalartype();
  if (name == "aten::full") return of_sizes(filling(r, 1, standard), r.argument(0));
  if (name == "aten::scalar_tensor") {
    const at::Tensor number = filling(r, 0, standard);
    return number.defined() ? std::optional(number.clone()) : std::nullopt;
  }
  if (!r.self().is_cpu()) return std::nullopt;
  if (name == "aten::new_full") return of_sizes(filling(r, 2, r.self().scalar_type()), r.argument(1));
  const at::Tensor number = filling(r, 1, r.self().scalar_type());
  if (!number.defined()) return std::nullopt;
  const std::optional<at::MemoryFormat> format =
      r.argument(6).isNone() ? std::nullopt : std::optional(r.argument(6).toMemoryFormat());
  return at::empty_like(r.self(), number.options(), format).copy_(number);
}

bool makes_of_number(const std::string& name) {
  return name == "aten::full" || name == "aten::scalar_tensor" || name == "aten::new_full" || name == "aten::full_like";
}

}  // namespace

at::Tensor repeated_to(const at::Tensor& number, const c10::IValue& sizes) {
  std::vector<c10::SymInt> out;
  for (const c10::IValue& size : sizes.toListRef()) out.push_back(size.toSymInt());
  return number.expand_symint(out).clone(at::MemoryFormat::Contiguous);
}

std::string functional_name(std::string name) {
  const size_t end = std::min(name.find('.'), name.size());
  return name[end - 1] == '_' ? name.erase(end - 1, 1) : name;
}

std::optional<at::Tensor> with_float_tensors(const std::string& name, const torch::jit::Stack& stack, size_t count) {
  const Rewrite call(stack, count);
  if (makes_of_number(name)) return filled(name, call);
  if (name == "aten::pow.Scalar" && call.applies(1))
    return at::pow(call.number(0, call.tensor(1).scalar_type()), call.tensor(1));
  const auto rule = rules_of_floats().find(rules_of_floats().count(name) != 0 ? name : functional_name(name));
  if (rule == rules_of_floats().end() || !call.applies(0)) return std::nullopt;
  return rule->second(call);
}

}  // namespace cresset::bridge

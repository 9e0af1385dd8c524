#include "bridge/float_scalars.h"

#include <ATen/OpMathType.h>
#include <ATen/ops/add.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/le.h>
#include <ATen/ops/lerp.h>
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

#include "bridge/sym_node.h"

namespace cresset::bridge {
namespace {

class Rewrite {
 public:
  Rewrite(const torch::jit::Stack& stack, size_t count) : stack_(stack), count_(count) {}

  const c10::IValue& argument(size_t i) const { return stack_[stack_.size() - count_ + i]; }
  at::Tensor tensor(size_t i) const { return argument(i).toTensor(); }
  at::Tensor self() const { return tensor(0); }

  // Argument i as eager's kernel sees it: in self's dtype. Undefined for none.
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

  // Whether tensors stand for the numbers among the arguments: floats, beside floats of a tensor.
  bool applies(size_t self_position) const {
    const c10::IValue& given = argument(self_position);
    if (!given.isTensor() || !given.toTensor().defined() || !at::isFloatingType(given.toTensor().scalar_type()) ||
        !given.toTensor().is_cpu())
      return false;
    for (size_t i = 0; i < count_; ++i)
      if (argument(i).isSymFloat())
        if (SymNode::operand_of(argument(i).toSymFloat().toSymNodeImpl()).defined()) return true;
    return false;
  }

  // self + alpha * other, and the like.
  std::optional<at::Tensor> scaled_sum(bool adds) const {
    const at::Tensor other = tensor(1);
    if (other.unsafeGetTensorImpl()->is_wrapped_number()) return std::nullopt;
    const at::ScalarType common = at::result_type(self(), other), wide = at::toOpMathType(common);
    const at::Tensor scaled = at::mul(other.to(wide), number(2, wide));
    return (adds ? at::add(self().to(wide), scaled) : at::sub(self().to(wide), scaled)).to(common);
  }
  // self + value * first (by or over) second, of one dtype.
  std::optional<at::Tensor> with_product(bool divides) const {
    const at::Tensor first = tensor(1), second = tensor(2);
    const at::ScalarType dtype = self().scalar_type(), wide = at::toOpMathType(dtype);
    if (first.scalar_type() != dtype || second.scalar_type() != dtype) return std::nullopt;
    const at::Tensor scaled = at::mul(first.to(wide), number(3, wide));
    const at::Tensor term = divides ? at::div(scaled, second.to(wide)) : at::mul(scaled, second.to(wide));
    return at::add(self().to(wide), term).to(dtype);
  }
  // self and a number, as C++ code writes it.
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
  at::Tensor leaky() const {
    const at::ScalarType wide = at::toOpMathType(self().scalar_type());
    const at::Tensor x = self().to(wide);
    return at::where(x.gt(0), x, x.mul(number(1, wide))).to(self().scalar_type());
  }

 private:
  const torch::jit::Stack& stack_;
  size_t count_;
};

using Rule = std::optional<at::Tensor> (*)(const Rewrite&);

const std::unordered_map<std::string_view, Rule>& rules() {
  static const std::unordered_map<std::string_view, Rule> table = {
      {"aten::masked_fill.Scalar",
       [](const Rewrite& r) { return std::optional(at::masked_fill(r.self(), r.tensor(1), r.number(2))); }},
      {"aten::fill_.Scalar", [](const Rewrite& r) { return std::optional(r.number(1)); }},
      {"aten::rsub.Scalar", [](const Rewrite& r) { return r.reversed_difference(); }},
      {"aten::add.Tensor", [](const Rewrite& r) { return r.scaled_sum(true); }},
      {"aten::add_.Tensor", [](const Rewrite& r) { return r.scaled_sum(true); }},
      {"aten::sub.Tensor", [](const Rewrite& r) { return r.scaled_sum(false); }},
      {"aten::sub_.Tensor", [](const Rewrite& r) { return r.scaled_sum(false); }},
      {"aten::add.Scalar", [](const Rewrite& r) { return r.with_number<&add_tensors>(); }},
      {"aten::sub.Scalar", [](const Rewrite& r) { return r.with_number<&subtract_tensors>(); }},
      {"aten::mul.Scalar", [](const Rewrite& r) { return r.with_number<&multiply_tensors>(); }},
      {"aten::div.Scalar", [](const Rewrite& r) { return r.with_number<&divide_tensors>(); }},
      {"aten::addcdiv", [](const Rewrite& r) { return r.with_product(true); }},
      {"aten::addcdiv_", [](const Rewrite& r) { return r.with_product(true); }},
      {"aten::addcmul", [](const Rewrite& r) { return r.with_product(false); }},
      {"aten::addcmul_", [](const Rewrite& r) { return r.with_product(false); }},
      {"aten::clamp",
       [](const Rewrite& r) {
         return std::optional(at::clamp(r.self(), std::optional(r.number(1)), std::optional(r.number(2))));
       }},
      {"aten::clamp_",
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
      {"aten::lerp_.Scalar",
       [](const Rewrite& r) { return std::optional(at::lerp(r.self(), r.tensor(1), r.number(2))); }},
      {"aten::remainder.Scalar", [](const Rewrite& r) { return std::optional(at::remainder(r.self(), r.number(1))); }},
      {"aten::leaky_relu", [](const Rewrite& r) { return std::optional(r.leaky()); }},
      {"aten::eq.Scalar", [](const Rewrite& r) { return std::optional(at::eq(r.self(), r.number(1))); }},
      {"aten::ne.Scalar", [](const Rewrite& r) { return std::optional(at::ne(r.self(), r.number(1))); }},
      {"aten::gt.Scalar", [](const Rewrite& r) { return std::optional(at::gt(r.self(), r.number(1))); }},
      {"aten::ge.Scalar", [](const Rewrite& r) { return std::optional(at::ge(r.self(), r.number(1))); }},
      {"aten::lt.Scalar", [](const Rewrite& r) { return std::optional(at::lt(r.self(), r.number(1))); }},
      {"aten::le.Scalar", [](const Rewrite& r) { return std::optional(at::le(r.self(), r.number(1))); }},
  };
  return table;
}

// The number at `position` in the dtype at `position` + 1, which a layout and a device follow: a 0-dim tensor.
// Undefined: it is asked for.
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
  if (!number.defined()) return std::nullopt;
  std::vector<c10::SymInt> out;
  for (const c10::IValue& size : sizes.toListRef()) out.push_back(size.toSymInt());
  return number.expand_symint(out).clone(at::MemoryFormat::Contiguous);
}

// Operators that make a tensor of one number.
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

std::optional<at::Tensor> with_float_tensors(const std::string& name, const torch::jit::Stack& stack, size_t count) {
  const Rewrite call(stack, count);
  if (makes_of_number(name)) return filled(name, call);
  if (name == "aten::pow.Scalar" && call.applies(1))
    return at::pow(call.number(0, call.tensor(1).scalar_type()), call.tensor(1));
  const auto rule = rules().find(name);
  if (rule == rules().end() || !call.applies(0)) return std::nullopt;
  return rule->second(call);
}

}  // namespace cresset::bridge

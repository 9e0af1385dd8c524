// Floats that a caller or data gives: tensors of one f64 in the graph, whose arithmetic is that of Python's floats.
#include <ATen/ops/add.h>
#include <ATen/ops/div.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sub.h>

#include "bridge/capture.h"
#include "bridge/sym_node.h"
#include "bridge/symbolic_float.h"

namespace cresset::bridge {
namespace {

SymNode* ours(const c10::SymNode& node) { return dynamic_cast<SymNode*>(node.get()); }

c10::SymNode (*unwrap)(const c10::SymNode&) = nullptr;

}  // namespace

void set_unwrapper(c10::SymNode (*function)(const c10::SymNode&)) { unwrap = function; }
c10::SymNode unwrapped(const c10::SymNode& node) {
  return ours(node) == nullptr && unwrap != nullptr ? unwrap(node) : node;
}

c10::SymNode float_in(Capture& capture, const at::Tensor& tensor) {
  const TraceTensor* trace = TraceTensor::from(tensor);
  if (capture.closed() || trace == nullptr || !at::isFloatingType(tensor.scalar_type()) || !tensor.is_cpu()) return {};
  if (!tensor.sym_numel().sym_eq(1).guard_bool(__FILE__, __LINE__)) return {};
  const at::NoGradGuard no_grad;
  // A copy: the number stays what it is when the tensor is written.
  const at::Tensor number = tensor.detach().reshape({}).to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
  return SymNode::make_value(capture.env_ptr(), number, std::nullopt);
}

at::Tensor add_tensors(const at::Tensor& a, const at::Tensor& b) { return at::add(a, b); }
at::Tensor subtract_tensors(const at::Tensor& a, const at::Tensor& b) { return at::sub(a, b); }
at::Tensor multiply_tensors(const at::Tensor& a, const at::Tensor& b) { return at::mul(a, b); }
at::Tensor divide_tensors(const at::Tensor& a, const at::Tensor& b) { return at::div(a, b); }

c10::SymNode SymNode::make_value(const Env& env, at::Tensor tensor, std::optional<Known> known) {
  auto node = c10::make_intrusive<SymNode>(env, Type::Value, env->pool().constant(0));
  node->tensor_ = std::move(tensor);
  node->known_ = known;
  return node;
}

at::Tensor SymNode::tensor_of(const c10::SymNode& given) {
  const c10::SymNode node = unwrapped(given);
  const SymNode* mine = ours(node);
  if (mine == nullptr || mine->type_ != Type::Value) return {};
  const TraceTensor* trace = TraceTensor::from(mine->tensor_);
  return trace != nullptr && !trace->settled() ? mine->tensor_ : at::Tensor();
}

at::Tensor SymNode::as_tensor() {
  const auto f64 = at::TensorOptions().dtype(at::kDouble);
  if (type_ == Type::Value) return tensor_;
  const bool whole = type_ == Type::Int || (type_ == Type::Ratio && pool().is_const(denominator_, 1));
  if (whole) return at::full({}, at::Scalar(make_int(env_, expr_)), f64);
  return at::scalar_tensor(guard_float(__FILE__, __LINE__), f64);
}

std::optional<SymNode::Known> SymNode::as_known() {
  if (type_ == Type::Value) return known_;
  if (type_ == Type::Float) return Known{value_, 0};
  return std::nullopt;
}

c10::SymNode SymNode::value_op(const c10::SymNode& other, TensorOp op, NumberOp number_op) {
  SymNode* theirs = ours(other);
  if (theirs == nullptr || theirs->env_ != env_ || (type_ != Type::Value && theirs->type_ != Type::Value)) return {};
  const Capture* capture = Capture::current();
  const bool open = capture != nullptr && !capture->closed() && capture->env_ptr() == env_;
  const auto is_size = [&](const SymNode& n) {
    return n.type_ == Type::Int || (n.type_ == Type::Ratio && pool().is_const(n.denominator_, 1));
  };
  const auto simple = [&](const SymNode& n) { return n.type_ == Type::Value || n.type_ == Type::Float || is_size(n); };
  if (!open || !simple(*this) || !simple(*theirs)) return {};
  const std::optional<Known> a = as_known(), b = theirs->as_known();
  std::optional<Known> known;
  // A size in it is no float argument: pinning those would not pin the number.
  const bool sizes = is_size(*this) || is_size(*theirs);
  if (a && b && !sizes) known = Known{number_op(a->number, b->number), a->arguments | b->arguments};
  return make_value(env_, op(as_tensor(), theirs->as_tensor()), known);
}

double SymNode::look() {
  Capture* capture = Capture::current();
  const bool open = capture != nullptr && !capture->closed() && capture->env_ptr() == env_;
  if (known_) {
    if (open) capture->pinned_floats |= known_->arguments;
    return known_->number;
  }
  if (value_ != 0) return std::pow(static_cast<double>(known(expr_)), value_);  // a size to that power
  const TraceTensor* trace = TraceTensor::from(tensor_);
  if (trace != nullptr && !trace->settled() &&
      !ends_piece(env_, [] { return std::string("a decision on a float that tensor data gives"); }))
    throw DataDependentError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)},
                             "cresset: a decision on a float that tensor data gives");
  const Capture::StepAside aside;
  return tensor_.item<double>();
}

}  // namespace cresset::bridge

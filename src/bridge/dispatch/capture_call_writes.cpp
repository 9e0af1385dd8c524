#include "bridge/capture/sym_node.h"
#include "bridge/dispatch/capture_call.h"
#include "ops/op_def.h"

namespace cresset::bridge {

using graph::Arg;
using graph::ValueId;

static std::string shape_text(const sym::ShapeEnv& env, const graph::TensorType& type) {
  std::vector<int64_t> sizes;
  for (const sym::ExprId e : type.sizes) sizes.push_back(env.hint_or(e, -1));
  return c10::str(c10::IntArrayRef(sizes));
}

ValueId CaptureCall::fit(ValueId result, const TraceTensor& target) {
  graph::Graph& graph = capture_.graph();
  const graph::TensorType& type = graph.type(result);
  bool same = type.sizes.size() == target.type().sizes.size();
  for (size_t d = 0; same && d < type.sizes.size(); ++d) same = decide_equal(type.sizes[d], target.type().sizes[d]);
  if (!same)
    TORCH_CHECK(false, "output with shape ", shape_text(capture_.env(), target.type()),
                " doesn't match the broadcast shape ", shape_text(capture_.env(), type));
  if (type.dtype == target.type().dtype) return result;
  TORCH_CHECK(category(type.dtype) <= category(target.type().dtype), "result type ", to_torch(type.dtype),
              " can't be cast to the desired output type ", to_torch(target.type().dtype));
  return capture_.recorder().call(
      graph::op_id("aten::_to_copy"),
      {result, target.type().dtype, graph::None{}, graph::None{}, graph::None{}, false, graph::None{}})[0];
}

bool CaptureCall::decide_equal(sym::ExprId a, sym::ExprId b) {
  if (capture_.env().known_equal(a, b)) return true;
  return capture_.env().evaluate(capture_.env().pool().eq(a, b), [] { return current_reason(); }).value_or(false);
}

void CaptureCall::require_writable(const TraceTensor& target) {
  capture_.storages().require_writable(target);
  sym::ExprPool& pool = capture_.env().pool();
  const graph::TensorType& type = target.type();
  for (size_t d = 0; d < type.rank(); ++d)
    if (capture_.env().known_equal(type.strides[d], pool.constant(0)) && !decide_equal(type.sizes[d], pool.constant(1)))
      abort_capture(BreakKind::AliasedWrite, entry_.name + " writes elements that share their memory");
}

// ATen's kernels other than pointwise ones refuse to write an argument that they read elsewhere.
static bool is_pointwise(graph::OpId op) {
  const ops::OpDef* def = ops::find(op);
  return def != nullptr && def->op_class == ops::OpClass::Pointwise;
}

void CaptureCall::check_overlap(size_t written, const TraceTensor& target) {
  for (size_t i = 0; i < count_; ++i) {
    if (i == written) continue;
    const TraceTensor* read = argument(i).isTensor() && argument(i).toTensor().defined()
                                  ? TraceTensor::from(argument(i).toTensor())
                                  : nullptr;
    if (read == nullptr) continue;
    const bool same = read->storage_id() == target.storage_id() && read->offset() == target.offset() &&
                      read->type().sizes == target.type().sizes && !is_pointwise(entry_.functional);
    if (same || (read != &target && capture_.storages().overlaps_partly(target, *read)))
      abort_capture(BreakKind::AliasedWrite, entry_.name + " writes memory that it reads elsewhere");
  }
}

void CaptureCall::in_place() {
  at::Tensor self = argument(0).toTensor();
  at::Tensor target_tensor = proxy(0);
  TraceTensor& target = *TraceTensor::from(target_tensor);
  require_writable(target);
  check_overlap(0, target);
  const size_t kept = entry_.functional_handle->schema().arguments().size();
  std::vector<Arg> args = arguments(std::min(count_, kept));
  if (args.size() < kept) append_defaults(args);
  const std::vector<ValueId> results = capture_.recorder().call(entry_.functional, std::move(args));
  if (category(capture_.graph().type(results[0]).dtype) == DTypeCategory::Float && self.is_complex())
    abort_capture(BreakKind::UnsupportedDtype, entry_.name + " of complex numbers");  // eager mode refuses it
  capture_.write(target, fit(results[0], target));
  finish_with(std::move(self));
}

void CaptureCall::out() {
  const size_t kept = count_ - entry_.out_arguments;
  strided_copy();
  for (size_t i = kept; i < count_; ++i)
    if (argument(i).isTensor()) require_writable(*TraceTensor::from(proxy(i)));
  const std::vector<ValueId> results = capture_.recorder().call(entry_.functional, arguments(kept));
  // Permitted dtypes of an out argument differ between operators, and meta kernels accept too many.
  for (size_t i = 0; i < entry_.out_arguments; ++i)
    if (argument(kept + i).isTensor() &&
        capture_.graph().type(results.at(i)).dtype != TraceTensor::from(proxy(kept + i))->type().dtype)
      abort_capture(BreakKind::UnsupportedDtype, entry_.name + " has an out argument of another dtype");
  std::vector<c10::IValue> outs;
  for (size_t i = 0; i < entry_.out_arguments; ++i) {
    if (argument(kept + i).isList())
      abort_capture(BreakKind::UnsupportedOperator, entry_.name + " writes a list of tensors");
    at::Tensor given = argument(kept + i).toTensor();
    write_out(kept + i, results.at(i));
    outs.emplace_back(given);
  }
  finish(std::move(outs));
}

void CaptureCall::write_out(size_t i, ValueId result) {
  at::Tensor target_tensor = proxy(i);
  TraceTensor& target = *TraceTensor::from(target_tensor);
  check_overlap(i, target);
  const graph::TensorType& type = capture_.graph().type(result);
  bool same = type.sizes.size() == target.type().sizes.size();
  for (size_t d = 0; same && d < type.sizes.size(); ++d) same = decide_equal(type.sizes[d], target.type().sizes[d]);
  if (same) return capture_.write(target, fit(result, target));
  const sym::ExprId count = graph::numel(capture_.env().pool(), target.type().sizes);
  if (TraceTensor::from(argument(i).toTensor()) == nullptr || target.chain() != nullptr ||
      !capture_.env().pool().is_const(count, 0) || type.dtype != target.type().dtype)
    abort_capture(BreakKind::SideEffect, entry_.name + " resizes its out argument");
  target.become(*TraceTensor::from(capture_.make_result(result)));
}

}  // namespace cresset::bridge

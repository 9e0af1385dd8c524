#include "bridge/decompositions/composites.h"

#include <ATen/EmptyTensor.h>
#include <ATen/InferSize.h>
#include <ATen/OpMathType.h>
#include <ATen/TensorUtils.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_batch_norm_impl_index_native.h>
#include <ATen/ops/_unsafe_view.h>
#include <ATen/ops/adaptive_avg_pool2d_native.h>
#include <ATen/ops/adaptive_avg_pool3d_native.h>
#include <ATen/ops/channel_shuffle_ops.h>
#include <ATen/ops/conv3d.h>
#include <ATen/ops/cov_ops.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/fill_diagonal_ops.h>
#include <ATen/ops/grid_sampler_2d.h>
#include <ATen/ops/grid_sampler_3d.h>
#include <ATen/ops/grid_sampler_native.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/rms_norm_ops.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/scaled_dot_product_attention_native.h>
#include <ATen/ops/split_ops.h>
#include <ATen/ops/split_with_sizes_ops.h>
#include <ATen/ops/unbind_ops.h>
#include <ATen/ops/where.h>
#include <torch/library.h>

#include <numeric>

#include "bridge/aten/autograd_history.h"
#include "bridge/aten/op_schema.h"
#include "bridge/capture/capture.h"
#include "bridge/capture/eager_call.h"
#include "bridge/capture/sym_node.h"
#include "bridge/capture/trace_tensor.h"
#include "bridge/decompositions/broadcasting.h"
#include "bridge/decompositions/fused_optimizers.h"
#include "bridge/decompositions/gpu_attention.h"
#include "bridge/decompositions/losses.h"
#include "bridge/decompositions/mask_kinds.h"
#include "bridge/decompositions/matmul.h"
#include "bridge/decompositions/norms.h"
#include "bridge/decompositions/recurrent_layers.h"
#include "bridge/decompositions/signals.h"
#include "bridge/symbolic/size_oblivious.h"
#include "bridge/symbolic/tensor_geometry.h"
#include "bridge/symbolic/view_or_copy.h"
#include "ops/library_traits.h"

namespace cresset::bridge {
namespace {

// upsample_*.vec(input, output_size?, [align_corners,] scale_factors?): passes the output size, computed as floor(size
// * scale), and each dimension's scale to the base operator.
void upsample_vec(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const std::vector<c10::IValue> args(stack->end() - static_cast<long>(count), stack->end());
  const at::Tensor input = args[0].toTensor();
  const c10::IValue& sizes = args[1];
  const c10::IValue& scales = args[count - 1];
  TORCH_CHECK(sizes.isNone() != scales.isNone(), "Must specify exactly one of output_size and scale_factors");
  const int64_t spatial = input.dim() - 2;
  std::vector<c10::SymInt> output;
  if (!sizes.isNone()) {
    TORCH_CHECK(static_cast<int64_t>(sizes.toListRef().size()) == spatial, "output_size has the wrong length");
    for (const c10::IValue& v : sizes.toListRef()) output.push_back(v.toSymInt());
  } else {
    const std::vector<double> factors = scales.toDoubleVector();
    TORCH_CHECK(static_cast<int64_t>(factors.size()) == spatial, "scale_factors has the wrong length");
    for (int64_t d = 0; d < spatial; ++d) {
      const c10::SymInt size = input.sym_size(d + 2);
      if (std::optional<int64_t> known = size.maybe_as_int())
        output.push_back(c10::SymInt(static_cast<int64_t>(static_cast<double>(*known) * factors[d])));
      else
        output.push_back(
            c10::SymInt(size.toSymNode()->sym_float()->mul(size.toSymNode()->wrap_float(factors[d]))->floor()));
    }
  }
  torch::jit::drop(*stack, count);
  stack->emplace_back(input);
  stack->emplace_back(output);
  if (count == 4) stack->push_back(args[2]);
  for (int64_t d = 0; d < spatial; ++d)
    stack->push_back(scales.isNone() ? c10::IValue() : c10::IValue(scales.toDoubleVector()[d]));
  c10::Dispatcher::singleton().findSchemaOrThrow(op.operator_name().name.c_str(), "").callBoxed(stack);
}

std::vector<at::Tensor> broadcast_tensors(at::TensorList tensors) {
  if (tensors.empty()) return {};
  std::vector<c10::SymInt> sizes = tensors[0].sym_sizes().vec();
  for (size_t i = 1; i < tensors.size(); ++i) sizes = broadcast_sizes(sizes, tensors[i].sym_sizes());
  std::vector<at::Tensor> out;
  const auto has_these = [&](const at::Tensor& tensor) {
    const c10::SymIntArrayRef own = tensor.sym_sizes();
    return own.size() == sizes.size() &&
           std::equal(own.begin(), own.end(), sizes.begin(),
                      [](const auto& a, const auto& b) { return a.sym_eq(b).guard_bool(__FILE__, __LINE__); });
  };
  // Tensors which already have the shape are returned themselves, as in ATen.
  for (const at::Tensor& tensor : tensors) out.push_back(has_these(tensor) ? tensor : tensor.expand_symint(sizes));
  return out;
}

bool is_same_size(const at::Tensor& a, const at::Tensor& b) {
  const c10::SymIntArrayRef x = a.sym_sizes(), y = b.sym_sizes();
  return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), [](const auto& m, const auto& n) {
           return m.sym_eq(n).guard_bool(__FILE__, __LINE__);
         });
}

// ATen's version needs all sizes as numbers.
at::Tensor masked_select_backward(const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& mask) {
  const at::Tensor whole = input.expand_symint(broadcast_sizes(input.sym_sizes(), mask.sym_sizes()));
  return at::zeros_like(whole, {}, at::MemoryFormat::Preserve).masked_scatter(mask, gradient);
}

// Some versions of ATen need the count of elements as a number.
at::Tensor trace_backward(const at::Tensor& gradient, c10::SymIntArrayRef sizes) {
  TORCH_CHECK(sizes.size() == 2, "expected matrix input");
  const at::TensorOptions options = at::TensorOptions().dtype(at::kLong).device(gradient.device());
  const at::Tensor rows = at::arange(at::Scalar(sizes[0]), options),
                   columns = at::arange(at::Scalar(sizes[1]), options);
  return at::where(rows.unsqueeze(1).eq(columns), gradient, at::zeros({}, gradient.options()));
}

at::Tensor take_along_dim(const at::Tensor& self, const at::Tensor& indices, std::optional<int64_t> given) {
  TORCH_CHECK(indices.scalar_type() == at::kLong, "torch.take_along_dim(): dtype of indices should be Long but got ",
              indices.scalar_type());
  if (!given) return self.view(-1).gather(0, indices.view(-1));
  TORCH_CHECK(self.dim() == indices.dim(), "torch.take_along_dim(): input and indices should have the same number of ",
              "dimensions, but got ", self.dim(), " dimensions for input, and ", indices.dim(),
              " dimensions for indices");
  const int64_t dim = c10::maybe_wrap_dim(*given, self.dim());
  const auto with = [&](const at::Tensor& tensor, const at::Tensor& other) {
    std::vector<c10::SymInt> sizes = tensor.sym_sizes().vec();
    sizes[static_cast<size_t>(dim)] = other.sym_size(dim);
    return broadcast_sizes(sizes, other.sym_sizes());
  };
  const at::Tensor wrapped = indices.remainder(at::Scalar(self.sym_size(dim)));
  return self.expand_symint(with(indices, self)).gather(dim, wrapped.expand_symint(with(self, indices)));
}

// ATen asks "is the mask's batch the query's, or else 1?", in this order: a mask of batch 1 would specialize batch 1. A
// mask which is expanded to the query's batch, without memory, is equivalent and leads to no question.
std::optional<at::Tensor> expanded_mask(const at::Tensor& query, const std::optional<at::Tensor>& given) {
  if (!given || !given->defined() || given->dim() != 4 || query.dim() != 4) return given;
  if (given->sym_size(0).maybe_as_int() != 1 || query.sym_size(0).maybe_as_int() == 1) return given;
  const at::Tensor mask = added_to_scores(*given, query);  // before the expansion, as in ATen
  return mask.expand_symint({query.sym_size(0), -1, -1, -1});
}

// The condition in ATen's test of a size for 1; nullopt for a plain number.
std::optional<sym::ExprId> is_single(const c10::SymInt& size) {
  if (!size.is_symbolic()) return std::nullopt;
  const auto single = size.toSymNode()->eq(size.toSymNode()->wrap_int(1));
  const auto* ours = dynamic_cast<const SymNode*>(single.get());
  return ours != nullptr ? std::optional(ours->expr()) : std::nullopt;
}

// Some versions of ATen ask "is the mask's batch 1, or else the query's?", in this order. If it is the query's, the
// first answer has no effect.
std::optional<sym::ExprId> idle_question(const at::Tensor& query, const std::optional<at::Tensor>& mask) {
  if (!mask || !mask->defined() || mask->dim() != 4 || query.dim() != 4) return std::nullopt;
  const c10::SymInt batch = mask->sym_size(0);
  if (!batch.is_symbolic() || !batch.sym_eq(query.sym_size(0)).guard_bool(__FILE__, __LINE__)) return std::nullopt;
  return is_single(batch);
}

// Where there is no head, ATen leaves early, for its kernel divides by their number. Of symbolic sizes it takes the
// answer of general ones, so it is decided here. No program is for none and for some.
bool has_no_heads(const at::Tensor& query) {
  if (query.dim() != 4) return false;
  const c10::SymInt heads = query.sym_size(1);
  if (const std::optional<int64_t> known = heads.maybe_as_int()) return *known == 0;
  return heads.toSymNodeImplUnowned()->has_hint() && heads.sym_eq(0).guard_bool(__FILE__, __LINE__);
}

at::Tensor attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const std::optional<at::Tensor>& given, double dropout, bool causal, std::optional<double> scale,
                     bool grouped) {
  if (has_no_heads(query)) {
    Capture* const capture = Capture::current();
    if (capture != nullptr && !capture->closed())
      capture->flush({BreakKind::UnsupportedOperator, "attention without heads"});
    const Capture::StepAside aside;
    return at::native::scaled_dot_product_attention(query, key, value, given, dropout, causal, scale, grouped);
  }
  // The CPU's kernel without a mask gives 0 where the scores are NaN.
  const bool may_drop = query.is_cuda() && given && given->defined() && !causal;
  const MaskKind kind = may_drop ? kind_of_mask(*given, query, key) : MaskKind::Other;
  const std::optional<at::Tensor> mask = kind == MaskKind::Other ? given : std::nullopt;
  causal |= kind == MaskKind::Causal;
  const SizeOblivious oblivious;
  if (query.is_cuda())
    if (const auto made = gpu_attention({query, key, value, mask, dropout, causal, scale, grouped})) return *made;
  const std::optional<at::Tensor> whole_mask = expanded_mask(query, mask);
  const std::optional<sym::ExprId> idle = idle_question(query, whole_mask);
  const EitherWay either_way(idle ? std::vector{*idle} : std::vector<sym::ExprId>{});
  return at::native::scaled_dot_product_attention(query, key, value, whole_mask, dropout, causal, scale, grouped);
}

// ATen tests for an empty tensor, to return early. With running statistics an empty batch needs no special case, so
// batch 0 is not distinguished here. Invalid arguments are left to ATen.
using Optional = std::optional<at::Tensor>;
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, int64_t> batch_norm_index(
    const at::Tensor& input, const Optional& weight, const Optional& bias, const Optional& mean,
    const Optional& variance, bool training, double momentum, double eps, bool cudnn) {
  const auto per_channel = [&](const Optional& t) {
    return !t || !t->defined() || (t->dim() == 1 && t->sym_size(0) == input.sym_size(1));
  };
  const bool has_statistics = mean && mean->defined() && variance && variance->defined();
  // On a GPU ATen's composite chooses a library by the sizes of the call; here kernels of our own compute it.
  const bool decided_here = input.is_cuda() || (!training && has_statistics);
  if (!decided_here || input.dim() < 2 || !per_channel(weight) || !per_channel(bias) || !per_channel(mean) ||
      !per_channel(variance))
    return at::native::_batch_norm_impl_index(input, weight, bias, mean, variance, training, momentum, eps, cudnn);
  auto [out, saved_mean, saved_scale] =
      at::native_batch_norm(input, weight, bias, mean, variance, training || !has_statistics, momentum, eps);
  at::Tensor reserve = at::empty({0}, input.options().dtype(at::kByte));
  return {std::move(out), std::move(saved_mean), std::move(saved_scale), std::move(reserve), 0};
}

// On a GPU ATen's composite asks for sizes, and chooses cuDNN for some of them. ATen's kernels compute the same values.
at::Tensor grid_sampler(const at::Tensor& input, const at::Tensor& grid, int64_t interpolation, int64_t padding,
                        bool align_corners) {
  if (input.is_cuda() && input.dim() == 4)
    return at::grid_sampler_2d(input, grid, interpolation, padding, align_corners);
  if (input.is_cuda() && input.dim() == 5)
    return at::grid_sampler_3d(input, grid, interpolation, padding, align_corners);
  return at::native::grid_sampler(input, grid, interpolation, padding, align_corners);
}

// ATen's version needs all sizes as numbers. Invalid arguments are left to it.
at::Tensor rms_norm(const at::Tensor& input, c10::SymIntArrayRef shape, const Optional& weight,
                    std::optional<double> eps) {
  const auto ends_with_shape = [&](const at::Tensor& t) {
    if (t.dim() < static_cast<int64_t>(shape.size())) return false;
    return std::equal(shape.rbegin(), shape.rend(), t.sym_sizes().rbegin(),
                      [](const auto& a, const auto& b) { return a.sym_eq(b).guard_bool(__FILE__, __LINE__); });
  };
  const bool weighted = weight && weight->defined();
  if (shape.empty() || !input.is_floating_point() || !ends_with_shape(input) ||
      (weighted && (weight->dim() != static_cast<int64_t>(shape.size()) || !ends_with_shape(*weight))))
    return at::_ops::rms_norm::redispatch(c10::DispatchKeySet(c10::DispatchKey::CPU), input, shape, weight, eps);
  std::vector<int64_t> dims(shape.size());
  std::iota(dims.begin(), dims.end(), input.dim() - static_cast<int64_t>(shape.size()));
  const at::ScalarType type = at::toOpMathType(input.scalar_type());
  const double smallest = type == at::kFloat ? static_cast<float>(eps.value_or(std::numeric_limits<float>::epsilon()))
                                             : eps.value_or(std::numeric_limits<double>::epsilon());
  const at::Tensor wide = input.to(type);
  at::Tensor out = wide.mul(wide.pow(2).mean(dims, /*keepdim=*/true).add(smallest).rsqrt());
  if (weighted) out = out.mul(*weight);
  return out.type_as(input).contiguous(input.suggest_memory_format());
}

// Forward-mode differentiation keeps a tangent unchanged when it has its primal's layout and an equally large storage.
// In a graph a storage is as large as its tensor.
bool has_same_storage_numel(const at::Tensor& a, const at::Tensor& b) {
  return a.sym_numel().sym_eq(b.sym_numel()).guard_bool(__FILE__, __LINE__);
}

// Zeros for a tangent with the layout of `primal`. The first `batches` dimensions of `tangent` belong to vmap.
at::Tensor zeros_like_primal(const at::Tensor& tangent, const at::Tensor& primal, int64_t batches) {
  std::vector<c10::SymInt> sizes = tangent.sym_sizes().slice(0, static_cast<size_t>(batches)).vec(),
                           strides(sizes.size());
  c10::SymInt stride = primal.sym_numel();
  for (size_t d = sizes.size(); d-- > 0; stride = stride * sizes[d]) strides[d] = stride;
  sizes.insert(sizes.end(), primal.sym_sizes().begin(), primal.sym_sizes().end());
  strides.insert(strides.end(), primal.sym_strides().begin(), primal.sym_strides().end());
  return tangent.new_empty_strided_symint(sizes, strides).zero_();
}

void as_general_sizes(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const SizeOblivious oblivious;
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
}

// ATen makes the result in the format that the strides of `self` suggest. Where dimensions of one element decide that,
// the answer of general sizes is taken, and its strides are told to who sees them (visible_strides.h).
void note_suggested_format(const at::Tensor& self, const at::Tensor& result) {
  const TraceTensor *source = TraceTensor::from(self), *made = TraceTensor::from(result);
  Capture* const capture = Capture::current();
  if (source == nullptr || made == nullptr || capture == nullptr || capture->closed()) return;
  const ViewOrCopy as_suggested(c10::MemoryFormat::Preserve);
  capture->storages().note_copy(*source, *made);
}

// ATen asks whether one element is left, whose mean it takes: the pool's result is the same.
template <at::Tensor (*pool)(const at::Tensor&, c10::SymIntArrayRef)>
at::Tensor pooled_to(const at::Tensor& self, c10::SymIntArrayRef sizes) {
  std::vector<sym::ExprId> questions;
  for (const c10::SymInt& size : sizes)
    if (const std::optional<sym::ExprId> question = is_single(size)) questions.push_back(*question);
  const EitherWay either_way(std::move(questions));
  at::Tensor out = pool(self, sizes);
  if (sizes.size() == 2) note_suggested_format(self, out);  // volumes are pooled into rows
  return out;
}

void group_norm(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const at::Tensor input = stack->at(stack->size() - op.schema().arguments().size()).toTensor();
  as_general_sizes(op, keys, stack);
  if (input.is_cpu()) note_suggested_format(input, stack->back().toTensor());  // in rows on other devices
}

// ATen tests for an empty tensor. A data-dependent count is treated as positive: for an empty tensor nothing is drawn.
at::Tensor dropout(const at::Tensor& input, double p, bool train) {
  const c10::SymInt count = input.sym_numel();
  const bool of_data = count.is_symbolic() && !count.toSymNodeImplUnowned()->has_hint();
  if (!train || !(p > 0) || !(p < 1) || !of_data) {
    const SizeOblivious oblivious;
    return at::_ops::dropout::redispatch(c10::DispatchKeySet(c10::DispatchKey::CPU), input, p, train);
  }
  return input * at::empty_like(input).bernoulli_(1 - p).div_(1 - p);
}

// Operators which claim symbolic sizes in their schema, although their code in ATen needs numbers.
void with_numbers_for_sizes(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  for (auto arg = stack->end() - static_cast<long>(count); arg != stack->end(); ++arg) {
    if (!arg->isSymIntList()) continue;
    std::vector<int64_t> sizes;
    for (const c10::IValue& size : arg->toListRef()) sizes.push_back(size.toSymInt().guard_int(__FILE__, __LINE__));
    *arg = std::move(sizes);
  }
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
}

// If `to` returns its argument unchanged at the present sizes, this is guarded for later calls.
void require_as_it_is(Capture& capture, const ViewOrCopy::Answers& answers) {
  for (const auto& [condition, answer] : answers)
    if (capture.env().evaluate(condition, [] { return current_reason(); }) != answer)
      abort_capture(BreakKind::UnsupportedLayout, "a tensor that is given as it is for other sizes");
}

// For computed tensors: a tensor in both formats gets row-major strides from operators, unlike the stride formulas.
void require_one_format(Capture& capture, const at::Tensor& tensor) {
  const TraceTensor* trace = TraceTensor::from(tensor);
  if (trace == nullptr || capture.storages().is_callers(*trace) || trace->type().rank() < 4) return;
  sym::ExprPool& pool = capture.env().pool();
  const auto is_wide = [&](sym::ExprId size) { return pool.ne(size, pool.constant(1)); };
  const std::vector<sym::ExprId>& sizes = trace->type().sizes;
  sym::ExprId any = is_wide(sizes[2]);
  for (size_t d = 3; d < sizes.size(); ++d) any = pool.logical_or(any, is_wide(sizes[d]));
  const sym::ExprId one_format = pool.logical_and(is_wide(sizes[1]), any);
  if (!capture.env().evaluate(one_format, [] { return current_reason(); }).value_or(false))
    abort_capture(BreakKind::UnsupportedLayout, "a memory format that dimensions of one element decide");
}

// ATen's `to` compares the format suggested by the strides with the requested format.
void to_format(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size(), below = stack->size() - count;
  const std::vector<c10::IValue> args(stack->end() - static_cast<long>(count), stack->end());
  Capture* const capture = Capture::current();
  const bool asks = !args.back().isNone() && args.back().toMemoryFormat() != at::MemoryFormat::Preserve;
  if (!asks || capture == nullptr || capture->closed())
    return op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  try {
    const ViewOrCopy choice(args.back().toMemoryFormat(), /*as_suggested=*/true);
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
    if (capture->closed()) return;
    const at::Tensor& self = args[0].toTensor();
    if (stack->back().toTensor().is_same(self)) {
      require_as_it_is(*capture, choice.answers());
      if (args.back().toMemoryFormat() != at::MemoryFormat::Contiguous) require_one_format(*capture, self);
    }
    if (capture->storages().is_given_back(self, stack->back().toTensor(), choice)) stack->back() = self;
    return;
  } catch (const CaptureAbort& e) {
    capture->flush(e.reason());
  }
  stack->resize(below);
  stack->insert(stack->end(), args.begin(), args.end());
  run_natively(op, *capture, *stack);
}

// Specializes the sizes of the tensor, and the symbols of the condition, which are 0 or 1: with numbers for them, the
// condition's answer is provable.
void specialize_single_sizes(sym::ShapeEnv& env, const TraceTensor& tensor, sym::ExprId condition) {
  std::vector<sym::ExprId> sizes = tensor.type().sizes;
  std::vector<sym::VarId> vars;
  env.pool().collect_vars(condition, vars);
  for (const sym::VarId var : vars) sizes.push_back(env.pool().var(var));
  for (const sym::ExprId size : sizes)
    if (env.hint_or(size, 2) < 2) (void)env.specialize(size, current_reason());
}

// Under no_grad(), a view of a tensor that wants gradients wants them, too, and a copy does not. There it is guarded
// that eager makes a copy. False: it makes a view, and the guards say so.
bool is_copy_where_seen(Capture& capture, const at::Tensor& self, const at::Tensor& result, const ViewOrCopy& choice) {
  if (c10::GradMode::is_enabled() || !self.requires_grad() || result.requires_grad()) return true;
  bool copies = true;
  for (const auto& [condition, answer] : choice.answers()) {
    const bool is_copy = capture.env().evaluate(condition, [] { return current_reason(); }).value_or(answer) == answer;
    if (const TraceTensor* trace = TraceTensor::from(self); !is_copy && trace != nullptr)
      specialize_single_sizes(capture.env(), *trace, condition);
    copies = copies && is_copy;
  }
  return copies;
}

// Whether the tensor, a copy of the program, is a view in eager mode whose elements lie apart, for the hinted sizes.
// These sizes are then guarded.
bool lies_apart(Capture& capture, const at::Tensor& self) {
  const TraceTensor* const trace = TraceTensor::from(self);
  if (trace == nullptr || trace->chain() != nullptr) return false;
  const auto choice = capture.storages().notes()->choices.find(trace->value);
  if (choice == capture.storages().notes()->choices.end() || !choice->second.any_view) return false;
  const graph::TensorType& source = capture.graph().type(choice->second.source);
  const auto hints = [&](const std::vector<sym::ExprId>& exprs) {
    std::vector<int64_t> out;
    for (const sym::ExprId e : exprs) out.push_back(capture.env().hint_or(e, 2));
    return out;
  };
  const std::vector<int64_t> had = hints(source.sizes), sizes = hints(trace->type().sizes);
  const auto view = at::detail::computeStride(had, hints(source.strides), sizes);
  if (!view) return false;
  const Capture::StepAside aside;
  if (at::Tensor(at::detail::empty_strided_meta(sizes, *view, at::kFloat)).is_contiguous()) return false;
  sym::ExprPool& pool = capture.env().pool();
  for (size_t d = 0; d < had.size(); ++d)
    if (had[d] < 2)
      capture.env().evaluate(pool.eq(source.sizes[d], pool.constant(had[d])), [] { return current_reason(); });
  return true;
}

at::Tensor cloned(const at::Tensor& self) {
  ViewOrCopy* const asked = std::exchange(ViewOrCopy::current(), nullptr);  // eager mode copies in any case
  at::Tensor out = self.clone(at::MemoryFormat::Contiguous);
  ViewOrCopy::current() = asked;
  return out;
}

// Whether contiguous() gives the tensor back, which is then guarded. Autograd refuses to record a copy of an outdated
// view, and eager mode makes no copy.
bool must_give_back(const at::Tensor& self, c10::MemoryFormat format) {
  const TraceTensor* const trace = is_outdated_view(self) ? TraceTensor::from(self) : nullptr;
  return trace != nullptr && !trace->is_conj() && !trace->is_neg() &&
         geometry::decide_format(trace->capture().env(), trace->type().sizes, trace->type().strides, format,
                                 [] { return current_reason(); });
}

// Where a size is inferred beside one of 0, ATen's code for symbolic sizes divides by it; that for numbers says what is
// wrong.
void as_view_or_copy(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const std::vector<c10::IValue> args(stack->end() - static_cast<long>(count), stack->end());
  const ViewOrCopy choice(op.schema().name() == "aten::contiguous" ? args[1].toMemoryFormat()
                                                                   : at::MemoryFormat::Contiguous);
  const bool asks_contiguous = op.schema().name() == "aten::contiguous";
  try {
    if (asks_contiguous && must_give_back(args[0].toTensor(), args[1].toMemoryFormat())) {
      stack->erase(stack->end() - static_cast<long>(count), stack->end());
      stack->push_back(args[0]);
      return;
    }
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
    Capture* const capture = Capture::current();
    if (capture == nullptr || capture->closed()) return;
    const at::Tensor &self = args[0].toTensor(), made = stack->back().toTensor();
    if (asks_contiguous && capture->storages().is_given_back(self, made, choice)) {
      stack->back() = self;
    } else if (asks_contiguous && made.is_same(self) && lies_apart(*capture, self)) {
      stack->back() = cloned(self);
    } else if (!is_copy_where_seen(*capture, self, made, choice)) {  // with these guards it is a view
      stack->pop_back();
      stack->insert(stack->end(), args.begin(), args.end());
      op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
    }
  } catch (const DivisionByZero&) {
    if (op.schema().name() != "aten::reshape") throw;
    std::vector<int64_t> sizes;
    for (const c10::IValue& size : args[1].toListRef()) sizes.push_back(size.toSymInt().guard_int(__FILE__, __LINE__));
    (void)at::infer_size(sizes, args[0].toTensor().sym_numel().guard_int(__FILE__, __LINE__));
    throw;
  }
}

// Copies of parts whose number depends on sizes: the view operators specialize the number.
std::vector<at::Tensor> copied(std::vector<at::Tensor> parts) {
  for (at::Tensor& part : parts) part = part.clone(at::MemoryFormat::Contiguous);
  return parts;
}
std::vector<at::Tensor> unbind_copy(const at::Tensor& self, int64_t dim) {
  return copied(at::_ops::unbind_int::call(self, dim));
}
std::vector<at::Tensor> split_copy(const at::Tensor& self, c10::SymInt size, int64_t dim) {
  return copied(at::_ops::split_Tensor::call(self, std::move(size), dim));
}
std::vector<at::Tensor> split_with_sizes_copy(const at::Tensor& self, c10::SymIntArrayRef sizes, int64_t dim) {
  return copied(at::_ops::split_with_sizes::call(self, sizes, dim));
}

// As in ATen, which needs the sizes as numbers. Invalid arguments are left to it.
at::Tensor isclose(const at::Tensor& self, const at::Tensor& other, double rtol, double atol, bool equal_nan) {
  const bool floats = self.is_floating_point() || self.is_complex();
  if (self.scalar_type() != other.scalar_type() || !(rtol >= 0) || !(atol >= 0) || self.is_quantized())
    return at::_ops::isclose::redispatch(c10::DispatchKeySet(c10::DispatchKey::CPU), self, other, rtol, atol,
                                         equal_nan);
  at::Tensor close = self == other;
  if (equal_nan && floats) close = close.logical_or(self.isnan().logical_and(other.isnan()));
  if (rtol == 0 && atol == 0) return close;
  const auto number = [&](const at::Tensor& t) { return floats ? t : t.to(at::get_default_dtype_as_scalartype()); };
  const at::Tensor allowed = atol + (rtol * number(other)).abs();
  const at::Tensor actual = (self.scalar_type() == at::kBool ? number(self) : self).sub(number(other)).abs();
  return close.logical_or(at::isfinite(actual).logical_and(actual <= allowed));
}

// ATen's version needs the sizes as numbers. Where autograd may refuse the write, its message names ATen's view.
at::Tensor& fill_diagonal(at::Tensor& self, const at::Scalar& value, bool wrap) {
  if (self.dim() != 2 || wrap || !may_rebase(self))
    return at::_ops::fill_diagonal_::redispatch(c10::DispatchKeySet(c10::DispatchKey::CPU), self, value, wrap);
  self.diagonal().fill_(value);
  return self;
}

// As in ATen, which needs some sizes as numbers.
at::Tensor product_of_blocks(const at::Tensor& self, const at::Tensor& other) {
  const auto rank = static_cast<size_t>(std::max(self.dim(), other.dim()));
  std::vector<c10::SymInt> left(2 * rank, 1), right(2 * rank, 1), sizes(rank);
  const auto put = [&](std::vector<c10::SymInt>& into, const at::Tensor& of, size_t second) {
    const size_t missing = rank - static_cast<size_t>(of.dim());
    for (size_t d = missing; d < rank; ++d) into[2 * d + second] = of.sym_size(static_cast<int64_t>(d - missing));
  };
  put(left, self, 0);
  put(right, other, 1);
  for (size_t d = 0; d < rank; ++d) sizes[d] = left[2 * d] * right[2 * d + 1];
  return at::_unsafe_view_symint(at::_unsafe_view_symint(self, left).mul(at::_unsafe_view_symint(other, right)), sizes);
}

// ATen's version writes through a tensor which claims to be no view of the output.
at::Tensor& kron_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  const at::Tensor made = product_of_blocks(self, other);
  return at::_ops::mul_out::call(made, at::scalar_tensor(1, made.options()), out);
}

// As in ATen. Its meta kernel gives the powers the layout of the exponents, unlike its real kernel.
at::Tensor ldexp(const at::Tensor& self, const at::Tensor& exponent) {
  return at::mul(self, at::pow(at::Scalar(2.0), exponent));
}

// Weights, and cases with a warning, are left to ATen.
at::Tensor cov(const at::Tensor& self, int64_t correction, const Optional& frequencies, const Optional& weights) {
  const bool plain = !(frequencies && frequencies->defined()) && !(weights && weights->defined());
  const bool usual = plain && self.dim() >= 1 && self.dim() <= 2 && self.scalar_type() != at::kBool;
  const at::Tensor rows = usual && self.dim() == 1 ? self.unsqueeze(0) : self;
  if (!usual || !rows.sym_size(1).sym_gt(correction).guard_bool(__FILE__, __LINE__))
    return at::_ops::cov::redispatch(c10::DispatchKeySet(c10::DispatchKey::CPU), self, correction, frequencies,
                                     weights);
  const c10::SymInt count = rows.sym_size(1);
  const at::Tensor centered = rows - rows.sum(1).div(at::Scalar(count)).unsqueeze(1);
  return centered.mm(centered.t().conj()).div(at::Scalar(count - correction)).squeeze();
}

// Determined once, by a convolution through oneDNN.
bool volumes_channels_last() {
  static const bool found = [] {
    // No capture, mode or transform takes part.
    const c10::impl::ForceDispatchKeyGuard plainly(c10::default_included_set, c10::default_excluded_set);
    const at::Tensor volumes = at::zeros({2, 2, 2, 2, 2}, at::kFloat).contiguous(at::MemoryFormat::ChannelsLast3d);
    return at::conv3d(volumes, at::zeros({2, 2, 1, 1, 1}, at::kFloat)).is_contiguous(at::MemoryFormat::ChannelsLast3d);
  }();
  return found;
}

}  // namespace

// ATen's version tests a size for 1 with `guard_or_false`, which answers for a general size (sym_node.h). Here both
// answers would not be right, so the question is decided with a guard.
std::vector<c10::SymInt> broadcast_sizes(c10::SymIntArrayRef a, c10::SymIntArrayRef b) {
  const size_t rank = std::max(a.size(), b.size());
  std::vector<c10::SymInt> out(rank);
  for (size_t i = 0; i < rank; ++i) {  // from the last dimension
    const size_t d = rank - 1 - i;
    if (i >= a.size() || i >= b.size()) {
      out[d] = i >= a.size() ? b[b.size() - 1 - i] : a[a.size() - 1 - i];
      continue;
    }
    const c10::SymInt &x = a[a.size() - 1 - i], &y = b[b.size() - 1 - i];
    if (y.maybe_as_int() == 1 || x.maybe_as_int() == 1) {  // for any other size
      out[d] = y.maybe_as_int() == 1 ? x : y;
    } else if (x.sym_eq(y).guard_bool(__FILE__, __LINE__)) {
      out[d] = x;
    } else if (x.sym_eq(1).guard_bool(__FILE__, __LINE__)) {
      out[d] = y;
    } else {
      TORCH_CHECK(y.sym_eq(1).guard_bool(__FILE__, __LINE__), "The size of tensor a (", x,
                  ") must match the size of tensor b (", y, ") at non-singleton dimension ", d);
      out[d] = x;
    }
  }
  return out;
}

void install_symbolic_composites() {
  ops::library_traits().volumes_channels_last = &volumes_channels_last;
  static auto* libraries = [] {
    auto* made = new std::vector<std::unique_ptr<torch::Library>>;
    for (const c10::DispatchKey key : {c10::DispatchKey::AutogradPrivateUse3, kTraceKey}) {
      made->push_back(std::make_unique<torch::Library>(torch::Library::IMPL, "aten", key, __FILE__, __LINE__));
      for (const char* name : {"upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d",
                               "_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d",
                               "upsample_linear1d", "upsample_bilinear2d", "upsample_bicubic2d", "upsample_trilinear3d",
                               "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa", "_upsample_lanczos2d_aa"}) {
        if (!c10::Dispatcher::singleton().findSchema({std::string("aten::") + name, "vec"}))
          continue;  // an older torch
        made->back()->impl((std::string(name) + ".vec").c_str(),
                           torch::CppFunction::makeFromBoxedFunction<&upsample_vec>());
      }
      for (const char* name :
           {"cdist", "diff", "dropout_", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"})
        made->back()->impl(name, torch::CppFunction::makeFromBoxedFunction<&as_general_sizes>());
      for (const char* name : {"empty.out", "randn.out"})
        made->back()->impl(name, torch::CppFunction::makeFromBoxedFunction<&with_numbers_for_sizes>());
      for (const char* name : {"reshape", "reshape_as", "flatten.using_ints", "ravel", "contiguous"})
        made->back()->impl(name, torch::CppFunction::makeFromBoxedFunction<&as_view_or_copy>());
      for (const char* name : {"to.dtype_layout", "to.dtype", "to.device", "to.other"})
        made->back()->impl(name, torch::CppFunction::makeFromBoxedFunction<&to_format>());
      made->back()->impl("group_norm", torch::CppFunction::makeFromBoxedFunction<&group_norm>());
      made->back()->impl("scaled_dot_product_attention", TORCH_FN(attention));
      made->back()->impl("_batch_norm_impl_index", TORCH_FN(batch_norm_index));
      made->back()->impl("adaptive_avg_pool2d", TORCH_FN(pooled_to<&at::native::adaptive_avg_pool2d_symint>));
      made->back()->impl("adaptive_avg_pool3d", TORCH_FN(pooled_to<&at::native::adaptive_avg_pool3d_symint>));
      made->back()->impl("grid_sampler", TORCH_FN(grid_sampler));
      made->back()->impl("linalg_matrix_norm", TORCH_FN(matrix_norm));
      made->back()->impl("broadcast_tensors", TORCH_FN(broadcast_tensors));
      made->back()->impl("matmul", TORCH_FN(symbolic_matmul));
      made->back()->impl("tensordot", TORCH_FN(symbolic_tensordot));
      made->back()->impl("cosine_similarity", TORCH_FN(cosine_similarity));
      made->back()->impl("einsum", TORCH_FN(einsum));
      made->back()->impl("rms_norm", TORCH_FN(rms_norm));
      made->back()->impl("dropout", TORCH_FN(dropout));
      made->back()->impl("take_along_dim", TORCH_FN(take_along_dim));
      made->back()->impl("masked_select_backward", TORCH_FN(masked_select_backward));
      made->back()->impl("trace_backward", TORCH_FN(trace_backward));
      made->back()->impl("is_same_size", TORCH_FN(is_same_size));
      made->back()->impl("fill_diagonal_", TORCH_FN(fill_diagonal));
      // ATen's version for other devices needs a view of a tensor whose layout is arbitrary.
      made->back()->impl("native_channel_shuffle", TORCH_FN(at::_ops::channel_shuffle::call));
      made->back()->impl("ldexp.Tensor", TORCH_FN(ldexp));
      made->back()->impl("kron", TORCH_FN(product_of_blocks));
      made->back()->impl("kron.out", TORCH_FN(kron_out));
      made->back()->impl("cov", TORCH_FN(cov));
      made->back()->impl("isclose", TORCH_FN(isclose));
      made->back()->impl("cross_entropy_loss", TORCH_FN(cross_entropy));
      add_signals(*made->back());
      add_fused_optimizers(*made->back());
    }
    made->back()->impl("_has_same_storage_numel", TORCH_FN(has_same_storage_numel));
    made->back()->impl("_new_zeros_with_same_feature_meta", TORCH_FN(zeros_like_primal));
    made->back()->impl("unbind_copy.int", TORCH_FN(unbind_copy));
    made->back()->impl("split_copy.Tensor", TORCH_FN(split_copy));
    made->back()->impl("split_with_sizes_copy", TORCH_FN(split_with_sizes_copy));
    add_recurrent_layers(*made->front());
    return made;
  }();
  (void)libraries;
}

}  // namespace cresset::bridge

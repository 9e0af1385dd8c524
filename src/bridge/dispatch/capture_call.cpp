#include "bridge/dispatch/capture_call.h"

#include <ATen/autocast_mode.h>

#include "bridge/capture/sym_node.h"
#include "bridge/decompositions/complex_scalars.h"
#include "bridge/decompositions/float_scalars.h"
#include "bridge/dispatch/view_offsets.h"
#include "bridge/symbolic/tensor_geometry.h"

namespace cresset::bridge {

using graph::Arg;
using graph::ValueId;

thread_local constinit const OpEntry* CaptureCall::current_op_ = nullptr;

// A sparse gradient must come from autograd: the operator runs eagerly between two graph segments.
void CaptureCall::require_dense_gradients() {
  if (!entry_.sparse_argument || !c10::GradMode::is_enabled()) return;
  const c10::IValue& sparse = argument(*entry_.sparse_argument);
  const c10::IValue& weight = argument(0);
  if (sparse.isBool() && sparse.toBool() && weight.isTensor() && weight.toTensor().requires_grad())
    abort_capture(BreakKind::UnsupportedLayout, entry_.name + " with a sparse gradient");
}

// Programs run below autocast, but the operator's own code may be subject to it.
void CaptureCall::require_no_autocast() {
  if (entry_.made_of_others &&
      (at::autocast::is_autocast_enabled(at::kCPU) || at::autocast::is_autocast_enabled(at::kCUDA)))
    abort_capture(BreakKind::UnsupportedOperator, entry_.name + " under autocast, which may cast in its own code");
}

// Without an autograd kernel for the operator, eager mode differentiates the operators inside its kernel.
void CaptureCall::require_derivative_formula() {
  if (!entry_.made_of_others || !c10::GradMode::is_enabled()) return;
  for (const c10::DispatchKey key : {c10::DispatchKey::Autograd, c10::DispatchKey::AutogradCPU,
                                     c10::DispatchKey::AutogradCUDA, c10::DispatchKey::CompositeImplicitAutograd})
    if (entry_.handle.hasKernelForDispatchKey(key)) return;
  const auto wants_gradient = [](const at::Tensor& t) { return t.defined() && t.requires_grad(); };
  for (size_t i = 0; i < count_; ++i) {
    const c10::IValue& given = argument(i);
    bool wanted = given.isTensor() && wants_gradient(given.toTensor());
    if (given.isTensorList())
      for (const at::Tensor& t : given.toTensorVector()) wanted = wanted || wants_gradient(t);
    if (wanted)
      abort_capture(BreakKind::UnsupportedOperator,
                    entry_.name + " has no kernel of autograd's, which sees what its own kernel calls");
  }
}

void CaptureCall::run() {
  AutogradNotes* notes = this->notes();
  if (notes == nullptr) return perform();
  notes->begin_call();
  const size_t begin = capture_.graph().node_count();
  perform();
  notes = this->notes();  // the segment may have ended
  if (notes != nullptr)
    notes->end_call(static_cast<uint32_t>(begin), static_cast<uint32_t>(capture_.graph().node_count()));
}

void CaptureCall::perform() {
  require_dense_gradients();
  require_no_autocast();
  require_derivative_formula();
  if (scalar_is_tensor()) return;
  switch (entry_.op_class) {
    case OpEntry::Class::Functional:
      return functional();
    case OpEntry::Class::View:
      return view();
    case OpEntry::Class::InPlace:
      return in_place();
    case OpEntry::Class::InPlaceView:
      return in_place_view();
    case OpEntry::Class::Out:
      return out();
    case OpEntry::Class::Opaque:
      abort_capture(BreakKind::UnsupportedOperator, entry_.name + " writes in a way that has no functional form");
  }
}

void CaptureCall::finish(std::vector<c10::IValue> results) {
  torch::jit::drop(stack_, count_);
  for (c10::IValue& r : results) stack_.push_back(std::move(r));
}

void CaptureCall::finish_with(at::Tensor result) {
  torch::jit::drop(stack_, count_);
  stack_.emplace_back(std::move(result));
}

std::vector<c10::IValue> CaptureCall::wrap(const std::vector<at::Tensor>& tensors, uint64_t absent) const {
  const std::vector<ArgType>& returns = entry_.return_types;
  std::vector<c10::IValue> out;
  out.reserve(returns.size());
  size_t next = 0;
  for (size_t i = 0; i < returns.size(); ++i) {
    if ((absent >> i & 1) != 0) {
      out.emplace_back(at::Tensor());
    } else if (returns[i] == ArgType::TensorList) {
      const size_t take = tensors.size() - next - (returns.size() - i - 1);
      out.emplace_back(
          c10::List<at::Tensor>(std::vector<at::Tensor>(tensors.begin() + next, tensors.begin() + next + take)));
      next += take;
    } else {
      out.emplace_back(next < tensors.size() ? tensors[next] : at::Tensor());
      ++next;
    }
  }
  return out;
}

bool CaptureCall::is_watchable_empty(const std::vector<ValueId>& results) const {
  static const graph::OpId empty = graph::op_id("aten::empty.memory_format");
  static const graph::OpId empty_strided = graph::op_id("aten::empty_strided");
  if (entry_.functional != empty && entry_.functional != empty_strided) return false;
  const graph::TensorType& type = capture_.graph().type(results[0]);
  if (type.device.kind != graph::DeviceKind::Cpu) return false;
  int64_t elements = 1;
  for (const sym::ExprId e : type.sizes) {
    if (!capture_.env().pool().is_const(e)) return false;
    elements *= capture_.env().pool().const_value(e);
  }
  const auto is_known = [&](sym::ExprId stride) { return capture_.env().pool().is_const(stride); };
  if (!std::all_of(type.strides.begin(), type.strides.end(), is_known)) return false;
  return elements > 0 && elements * byte_size(type.dtype) <= kWatchedBytes;
}

bool CaptureCall::scalar_is_tensor() {
  for (size_t i = 0; i < count_; ++i) {
    const bool complex = argument(i).isComplexDouble();
    if (!complex && !argument(i).isSymFloat()) continue;
    const bool in_place = entry_.op_class == OpEntry::Class::InPlace;
    std::optional<at::Tensor> out =
        complex ? with_complex_tensors(entry_.name, stack_, count_) : with_float_tensors(entry_.name, stack_, count_);
    if (out)
      finish(
          {in_place && !out->is_same(argument(0).toTensor()) ? at::Tensor(argument(0).toTensor()).copy_(*out) : *out});
    return out.has_value();
  }
  return false;
}

bool CaptureCall::symbolic_item() {
  const bool boolean = argument(0).toTensor().scalar_type() == at::kBool;
  if (!boolean && !at::isIntegralType(argument(0).toTensor().scalar_type(), false)) return false;
  const Arg value = to_graph(capture_, argument(0), ArgType::Tensor);
  const auto* tensor = std::get_if<ValueId>(&value);
  const auto numbers = tensor != nullptr ? capture_.recorder().symbolic_elements(*tensor) : std::nullopt;
  if (!numbers || numbers->size() != 1) return false;
  sym::ExprPool& pool = capture_.env().pool();
  const sym::ExprId found = numbers->at(0);
  const sym::ExprId truth = pool.is_boolean(found) ? found : pool.ne(found, pool.constant(0));
  finish({boolean ? at::Scalar(SymNode::make_bool(capture_.env_ptr(), truth))
                  : at::Scalar(SymNode::make_int(capture_.env_ptr(), numbers->at(0)))});
  return true;
}

bool CaptureCall::read_number() {
  static const graph::OpId item = graph::op_id("aten::_local_scalar_dense");
  if (entry_.functional != item) return false;
  if (symbolic_item()) return true;
  if (capture_.symbolic_booleans)
    abort_capture(BreakKind::DataDependentValue, "a number read from tensor data, which is not kept as a symbol");
  if (capture_.ends_in_order())
    abort_capture(BreakKind::DataDependentValue, "a number read from tensor data");  // a graph break
  const Arg value = to_graph(capture_, argument(0), ArgType::Tensor);
  finish({capture_.recorder().read_number(std::get<ValueId>(value))});
  return true;
}

bool CaptureCall::batch_norm_in_training() {
  static const graph::OpId batch_norm = graph::op_id("aten::native_batch_norm"),
                           functional = graph::op_id("aten::_native_batch_norm_legit_functional");
  constexpr size_t kMean = 3, kVariance = 4, kTraining = 5;
  if (entry_.functional != batch_norm || !argument(kTraining).toBool()) return false;
  for (const size_t i : {kMean, kVariance})
    if (argument(i).isNone() || !argument(i).toTensor().defined()) return false;
  const at::Tensor mean = proxy(kMean), variance = proxy(kVariance);
  for (const at::Tensor& written : {mean, variance}) require_writable(*TraceTensor::from(written));
  const std::vector<ValueId> results = capture_.recorder().call(functional, arguments(count_));
  capture_.write(*TraceTensor::from(mean), fit(results[3], *TraceTensor::from(mean)));
  capture_.write(*TraceTensor::from(variance), fit(results[4], *TraceTensor::from(variance)));
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < 3; ++i) tensors.push_back(capture_.make_result(results[i]));
  finish(wrap(tensors));
  return true;
}

bool CaptureCall::is_hidden_view() const {
  const ops::OpDef* def = ops::find(entry_.functional);
  return def != nullptr && def->op_class == ops::OpClass::View && ViewOrCopy::current() == nullptr;
}

bool CaptureCall::strided_copy() {
  static const graph::OpId copy = graph::op_id("aten::as_strided_copy"),
                           scatter = graph::op_id("aten::as_strided_scatter");
  if (entry_.functional != copy && entry_.functional != scatter) return false;
  const at::Tensor self = proxy(0);
  if (entry_.functional == copy && entry_.op_class == OpEntry::Class::Functional) {
    const at::Tensor view = strided(self, arguments_of_view(*TraceTensor::from(self)));
    const ValueId elements = capture_.value_of(*TraceTensor::from(view));
    finish_with(capture_.make_result(
        capture_.recorder().call(graph::op_id("aten::clone"), {elements, graph::MemoryFormat::Contiguous})[0]));
    return true;
  }
  const TraceTensor& trace = *TraceTensor::from(self);
  if (trace.chain() != nullptr || !is_dense(capture_.env(), trace) ||
      (capture_.storages().is_callers(trace) && !capture_.storages().starts_storage(trace)))
    abort_capture(BreakKind::UnsupportedOperator, entry_.name + " of a part of a storage");
  if (entry_.functional == scatter && argument(0).toTensor().requires_grad() &&
      !geometry::decide_format(capture_.env(), trace.type().sizes, trace.type().strides, at::MemoryFormat::Contiguous,
                               [] { return current_reason(); }))
    abort_capture(BreakKind::UnsupportedLayout, entry_.name + " of a layout for which ATen has no derivative");
  std::vector<Arg> args = arguments(count_);
  if (entry_.functional == scatter) args.erase(args.begin() + 1);
  if (std::holds_alternative<graph::None>(args[3])) args[3] = capture_.env().pool().constant(0);
  check_inside(trace, args);
  return false;
}

// Whether this is torch's clone of a conjugated or negated view, made for operators without support for such views. The
// value which is read is already new.
static bool is_copy_of_read(graph::OpId op, const at::Tensor& self, const c10::IValue& format) {
  static const graph::OpId clone = graph::op_id("aten::clone");
  return op == clone && (self.is_conj() || self.is_neg()) && ViewOrCopy::current() == nullptr &&
         (format.isNone() || format.toMemoryFormat() == at::MemoryFormat::Preserve);
}

static at::Tensor copy_of_read(Capture& capture, AutogradNotes* notes, const at::Tensor& self) {
  TraceTensor* const trace = TraceTensor::from(self);
  if (notes != nullptr && trace != nullptr) notes->note(self, capture.memory_of(*trace), /*is_memory=*/true);
  return capture.make_result(value_of(capture, self));
}

// ATen's copies for these operators include the memory between the elements, which is no part of the program.
static bool copies_gaps(graph::OpId op) {
  static const std::unordered_set<graph::OpId> scatters{graph::op_id("aten::slice_scatter"),
                                                        graph::op_id("aten::select_scatter"),
                                                        graph::op_id("aten::diagonal_scatter")};
  return scatters.contains(op);
}

static bool has_gaps(sym::ShapeEnv& env, const graph::TensorType& type) {
  std::vector<sym::ExprId> sizes, strides;
  for (size_t d = 0; d < type.rank(); ++d) {
    if (env.known_equal(type.strides[d], env.pool().constant(0))) continue;  // the same elements again
    sizes.push_back(type.sizes[d]);
    strides.push_back(type.strides[d]);
  }
  return !geometry::is_non_overlapping_and_dense(env, sizes, strides);
}

// The result is a value of its own, as long as nobody can see that it shares the caller's memory. Parts of a tensor
// (aten::unsafe_split) keep the gaps of their strides, which a value of its own has not.
void CaptureCall::hidden_view_of_callers(const TraceTensor& source) {
  if (!gives_one_tensor())
    abort_capture(BreakKind::AliasedWrite,
                  entry_.name + " of a caller's tensor with a history, whose parts share memory");
  at::Tensor result = capture_.make_result(capture_.recorder().call(entry_.functional, arguments(count_))[0]);
  capture_.storages().note_hidden_alias(source, *TraceTensor::from(result));
  finish_with(std::move(result));
}

void CaptureCall::functional() {
  static const graph::OpId lift = graph::op_id("aten::lift");
  if (entry_.functional == lift) return finish_with(argument(0).toTensor());  // lift returns its argument
  if (is_hidden_view()) {
    // Autograd treats the result as new, with a history of its own. In a program's results, an alias of an argument has
    // none.
    const at::Tensor source = proxy(0);
    const bool has_history =
        argument(0).toTensor().requires_grad() && capture_.storages().is_callers(*TraceTensor::from(source));
    return has_history ? hidden_view_of_callers(*TraceTensor::from(source)) : view();
  }
  if (strided_copy()) return;
  if (copies_gaps(entry_.functional) && has_gaps(capture_.env(), TraceTensor::from(proxy(0))->type()))
    abort_capture(BreakKind::UnsupportedLayout, entry_.name + " of memory with gaps");
  if (count_ == 2 && argument(0).isTensor() && is_copy_of_read(entry_.functional, argument(0).toTensor(), argument(1)))
    return finish_with(copy_of_read(capture_, notes(), argument(0).toTensor()));
  if (read_number() || batch_norm_in_training()) return;
  const auto [results, absent] = capture_.recorder().record(entry_.functional, arguments(count_));
  const bool watched = is_watchable_empty(results);
  if (results.size() == 1 && absent == 0 && gives_one_tensor()) {
    at::Tensor result = watched ? capture_.make_watched_empty(results[0]) : capture_.make_result(results[0]);
    if (ViewOrCopy::current() != nullptr) note_copy(result);
    return finish_with(std::move(result));
  }
  std::vector<at::Tensor> tensors;
  tensors.reserve(results.size());
  for (const ValueId v : results) tensors.push_back(capture_.make_result(v));
  finish(wrap(tensors, absent));
}

void CaptureCall::note_copy(const at::Tensor& result) {
  if (!ops::hands_on(entry_.functional)) return;
  const at::Tensor source = proxy(0);
  if (source.scalar_type() == result.scalar_type() && source.device() == result.device())
    capture_.storages().note_copy(*TraceTensor::from(source), *TraceTensor::from(result));
}

at::Tensor CaptureCall::proxy(size_t i) {
  const at::Tensor& tensor = argument(i).toTensor();
  return TraceTensor::from(tensor) != nullptr ? tensor : capture_.lift(tensor);
}

}  // namespace cresset::bridge

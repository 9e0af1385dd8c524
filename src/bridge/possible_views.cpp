#include "bridge/possible_views.h"

#include <ATen/EmptyTensor.h>
#include <ATen/TensorUtils.h>

#include <algorithm>

#include "bridge/arguments.h"
#include "bridge/capture.h"
#include "bridge/dtypes.h"
#include "bridge/op_entry.h"
#include "bridge/sym_node.h"
#include "bridge/tensor_geometry.h"
#include "ops/op_def.h"

namespace cresset::bridge {

void Capture::note_copy(const TraceTensor& source, const TraceTensor& copy) {
  const ViewOrCopy* choice = ViewOrCopy::current();
  if (choice == nullptr) return;
  const uint32_t from = source.storage_id().index, to = copy.storage_id().index;
  for (const PossibleView& known : possible_views_) {  // the second step of a reshape
    if (known.copy != from) continue;
    PossibleView next = known;
    next.copy = to;
    next.choice.any_view = true;
    notes_->choices[copy.value] = next.choice;
    possible_views_.push_back(std::move(next));
    return;
  }
  if (choice->answers().empty()) return;
  const ViewChoice made = choice->choice(source.value);
  notes_->choices[copy.value] = made;
  possible_views_.push_back({to, from, source.type(), source.offset(), made, source.chain() == nullptr,
                             source.is_conj(), source.is_neg(), choice->answers()});
}

bool Capture::is_given_back(const at::Tensor& self, const at::Tensor& result, const ViewOrCopy& choice) {
  const TraceTensor* trace = TraceTensor::from(self);
  if (trace == nullptr || trace->chain() != nullptr || result.is_same(self)) return false;
  const Storage& storage = storages_[trace->storage_id().index];
  if (storage.home != OutputSpec::Kind::Input || result.scalar_type() != self.scalar_type()) return false;
  const at::Tensor& real = real_inputs_[storage.position];
  const ViewChoice made = choice.choice({});
  if (!made.gives_source(real.sizes(), real.strides())) return false;
  const auto why = [] { return current_reason(); };
  if (!made.as_suggested)
    return geometry::decide_format(env(), trace->type().sizes, trace->type().strides, made.format, why);
  for (const auto& [condition, answer] : choice.answers()) env().evaluate(condition, why);
  return true;
}

// What was computed lies as arguments do, it is not known as which.
void Capture::hold_strides(const TraceTensor& tensor) {
  const Storage& storage = storages_[tensor.storage_id().index];
  if (storage.home == OutputSpec::Kind::Constant) return;
  const bool is_argument = storage.home == OutputSpec::Kind::Input;
  for (size_t i = 0; i < real_inputs_.size(); ++i) {
    if (is_argument && storage.position != i) continue;
    const graph::TensorType& type = graph_->type(graph_->inputs[i]);
    for (size_t d = 0; d < type.rank(); ++d)
      if (env().hint(type.strides[d]) != real_inputs_[i].stride(static_cast<int64_t>(d)))
        abort_capture("a memory format that dimensions of one element decide");
    input_layouts_[i].exact = true;
  }
}

const PossibleView* Capture::possible_view(uint32_t storage) const {
  const auto found = std::find_if(possible_views_.begin(), possible_views_.end(),
                                  [&](const PossibleView& known) { return known.copy == storage; });
  return found == possible_views_.end() ? nullptr : &*found;
}

bool Capture::lays_out(const TraceTensor& tensor) const {
  const uint32_t index = tensor.storage_id().index;
  if (is_callers(tensor) || possible_view(index) != nullptr) return false;
  // Where dimensions of one element are, formulas of other orders are not eager's (visible_strides.h).
  if (tensor.type().strides != graph::contiguous_strides(graph_->pool(), tensor.type().sizes)) return false;
  const graph::Value& value = graph_->value(storages_[index].value);
  if (value.kind != graph::Value::Kind::Result) return false;
  const graph::Node& node = graph_->node(value.node);
  const ops::OpDef* def = ops::find(node.op);
  if (def == nullptr || node.through_aten) return false;
  return def->op_class != ops::OpClass::Extern && def->op_class != ops::OpClass::Composite;
}

// Guards that it is a copy. False: it is a view, by the hints.
bool Capture::guard_copy(const PossibleView& view) {
  const auto holds = [&](const std::pair<sym::ExprId, bool>& answer) {
    const std::optional<int64_t> hint = env().hint(answer.first);
    return !hint || (*hint != 0) == answer.second;
  };
  if (!std::all_of(view.answers.begin(), view.answers.end(), holds)) return false;
  for (const auto& [condition, answer] : view.answers)
    if (env().hint(condition)) env().evaluate(condition, [] { return current_reason(); });
  return true;
}

bool Capture::is_alive(uint32_t storage) {
  if (storages_[storage].home != OutputSpec::Kind::GraphOutput) return true;
  const std::lock_guard lock(live_mutex_);
  return std::any_of(live_.begin(), live_.end(),
                     [&](const TraceTensor* tensor) { return tensor->storage_id().index == storage; });
}

// Before a write to `storage`: what shares its memory in eager must share it here.
void Capture::guard_copies_of(uint32_t storage) {
  for (const PossibleView& view : possible_views_) {
    if (view.copy != storage && view.source != storage) continue;
    if (!is_alive(view.copy == storage ? view.source : view.copy)) continue;
    if (!guard_copy(view)) abort_capture("a write to memory that two tensors share because a size is 0 or 1");
  }
}

// As `escaping` says, somebody sees the memory that the copy shares with its source, if it is a view.
bool Capture::shows(const PossibleView& view, const std::unordered_set<uint32_t>& escaping) const {
  if (storages_[view.source].home != OutputSpec::Kind::GraphOutput || escaping.count(view.source) != 0) return true;
  const PossibleView* origin = possible_view(view.source);
  return origin != nullptr && shows(*origin, escaping);
}

std::optional<int64_t> Capture::pinned(sym::ExprId e) { return env().specialize(e, current_reason()); }

std::optional<std::vector<int64_t>> Capture::pinned(const std::vector<sym::ExprId>& exprs) {
  std::vector<int64_t> out;
  for (const sym::ExprId e : exprs) {
    const std::optional<int64_t> value = pinned(e);
    if (!value) return std::nullopt;  // sizes that data gives
    out.push_back(*value);
  }
  return out;
}

bool ViewChoice::gives_source(c10::IntArrayRef sizes, c10::IntArrayRef strides) const {
  const Capture::StepAside aside;
  const at::Tensor source(at::detail::empty_strided_meta(sizes, strides, at::kFloat));
  return as_suggested ? source.suggest_memory_format() == format : source.is_contiguous(format);
}

namespace {

struct NotPinned {};

// A view of the copy as eager mode makes it, of `base`, which lies where the copy's source does. Throws NotPinned, and
// what ATen throws.
at::Tensor replayed(const ViewChain& link, const at::Tensor& base, const std::function<int64_t(sym::ExprId)>& integer) {
  static const graph::OpId as_strided = graph::op_id("aten::as_strided");
  const at::Tensor parent = link.parent != nullptr ? replayed(*link.parent, base, integer) : base;
  const std::optional<c10::OperatorHandle> op = find_operator(link.op);
  // A view by as_strided counts in the whole storage, of which the copy is a part.
  if (link.op == as_strided || !op || link.type.dtype != link.parent_type.dtype) throw NotPinned{};
  const auto& arguments = op->schema().arguments();
  torch::jit::Stack stack;
  for (size_t i = 0; i < arguments.size(); ++i)
    stack.push_back(i < link.args.size()
                        ? to_torch(
                              link.args[i], arg_type(arguments[i]), [&](graph::ValueId) { return parent; }, integer)
                        : *arguments[i].default_value());
  op->callBoxed(stack);
  return stack.at(0).toTensor();
}

}  // namespace

// A result whose memory shows whether it is a view: when sizes of 0 and 1 decide it, it is given as eager gives it, in
// a program for these sizes alone. nullopt: it is a copy.
std::optional<AsView> Capture::as_view(const TraceTensor& trace, const std::unordered_set<uint32_t>& escaping) {
  const PossibleView* view = possible_view(trace.storage_id().index);
  if (view == nullptr || !shows(*view, escaping) || guard_copy(*view)) return std::nullopt;
  const graph::TensorType& copy = graph_->type(storages_[view->copy].value);
  const auto sizes = pinned(view->source_type.sizes), strides = pinned(view->source_type.strides),
             copy_sizes = pinned(copy.sizes), copy_strides = pinned(copy.strides),
             own_strides = pinned(trace.type().strides);
  const auto start = pinned(view->source_offset), own_start = pinned(trace.offset());
  if (!sizes || !strides || !copy_sizes || !copy_strides || !own_strides || !start || !own_start) return std::nullopt;
  if (possible_view(view->source) != nullptr) return std::nullopt;
  const bool is_source = !view->choice.any_view;
  if (is_source && !view->choice.gives_source(*sizes, *strides)) return std::nullopt;
  std::optional<std::vector<int64_t>> there = strides;
  if (!is_source) there = at::detail::computeStride(*sizes, *strides, *copy_sizes);
  if (!there) return std::nullopt;
  bool same = true;
  for (size_t d = 0; d < there->size(); ++d) same &= (*copy_sizes)[d] <= 1 || (*there)[d] == (*copy_strides)[d];
  int64_t offset = *own_start;
  std::vector<int64_t> lies = trace.chain() == nullptr ? *there : *own_strides;
  if (trace.chain() != nullptr && !same) {
    const auto integer = [&](sym::ExprId e) { return pinned(e) ? *pinned(e) : throw NotPinned{}; };
    try {
      const StepAside aside;
      const at::Tensor base(at::detail::empty_strided_meta(*copy_sizes, *there, to_torch(copy.dtype)));
      const at::Tensor made = replayed(*trace.chain(), base, integer);
      lies = made.strides().vec();
      offset = made.storage_offset();
    } catch (const NotPinned&) {
      return std::nullopt;
    } catch (const c10::Error&) {  // no such view
      return std::nullopt;
    }
  }
  AsView out{view->source,
             {},
             env().pool().constant(*start + offset),
             is_source && view->of_base && trace.chain() == nullptr,
             trace.is_conj() != view->conjugated,
             trace.is_neg() != view->negated};
  for (const int64_t s : lies) out.strides.push_back(env().pool().constant(s));
  return out;
}

}  // namespace cresset::bridge

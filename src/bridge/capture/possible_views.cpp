#include <ATen/EmptyTensor.h>
#include <ATen/TensorUtils.h>

#include <algorithm>

#include "bridge/aten/dtypes.h"
#include "bridge/aten/op_schema.h"
#include "bridge/capture/arguments.h"
#include "bridge/capture/capture.h"
#include "bridge/capture/sym_node.h"
#include "bridge/symbolic/tensor_geometry.h"
#include "bridge/symbolic/view_or_copy.h"
#include "ops/op_def.h"

namespace cresset::bridge {

void StorageTable::note_copy(const TraceTensor& source, const TraceTensor& copy) {
  ViewOrCopy* const choice = ViewOrCopy::current();
  if (choice == nullptr) return;
  if (choice->choice({}).format == c10::MemoryFormat::Preserve) {  // made in the format that the source suggests
    notes_->choices[copy.value] = choice->choice(source.value);
    return;
  }
  const uint32_t from = source.storage_id().index, to = copy.storage_id().index;
  const bool is_second_step = choice->has_made(from);
  choice->note_made(to);
  for (const PossibleView& known : possible_views_) {
    if (!is_second_step || known.copy != from) continue;
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

bool StorageTable::is_given_back(const at::Tensor& self, const at::Tensor& result, const ViewOrCopy& choice) {
  const TraceTensor* trace = TraceTensor::from(self);
  if (trace == nullptr || trace->chain() != nullptr || result.is_same(self)) return false;
  const Storage& storage = storages_[trace->storage_id().index];
  if (storage.home != OutputSpec::Kind::Input || result.scalar_type() != self.scalar_type()) return false;
  const at::Tensor& real = recorder_.inputs()[storage.position];
  const ViewChoice made = choice.choice({});
  if (!gives_source(made, real.sizes(), real.strides())) return false;
  const auto why = [] { return current_reason(); };
  if (!made.as_suggested)
    return geometry::decide_format(recorder_.env(), trace->type().sizes, trace->type().strides, made.format, why);
  for (const auto& [condition, answer] : choice.answers()) recorder_.env().evaluate(condition, why);
  return true;
}

// A computed tensor may depend on the strides of any argument, so all arguments are guarded.
void StorageTable::hold_strides(const TraceTensor& tensor) {
  const Storage& storage = storages_[tensor.storage_id().index];
  if (storage.home == OutputSpec::Kind::Constant) return;
  const bool is_argument = storage.home == OutputSpec::Kind::Input;
  for (size_t i = 0; i < recorder_.inputs().size(); ++i) {
    if (is_argument && storage.position != i) continue;
    const graph::TensorType& type = recorder_.graph().type(recorder_.graph().inputs[i]);
    for (size_t d = 0; d < type.rank(); ++d)
      if (recorder_.env().hint(type.strides[d]) != recorder_.inputs()[i].stride(static_cast<int64_t>(d)))
        abort_capture(BreakKind::UnsupportedLayout, "a memory format that dimensions of one element decide");
    input_layouts_[i].exact = true;
  }
}

// Only a view without elements may begin behind a dimension of at most one element, whose stride no formula gives.
void StorageTable::hold_offset(const TraceTensor& tensor) {
  if (tensor.chain() == nullptr || storages_[tensor.storage_id().index].home != OutputSpec::Kind::Input) return;
  sym::ExprPool& pool = recorder_.env().pool();
  if (pool.is_const(tensor.offset(), 0)) return;
  const sym::ExprId none = pool.eq(geometry::numel(recorder_.env(), tensor.type().sizes), pool.constant(0));
  if (recorder_.env().evaluate(none, [] { return current_reason(); }).value_or(false)) hold_strides(tensor);
}

const PossibleView* StorageTable::possible_view(uint32_t storage) const {
  const auto found = std::find_if(possible_views_.begin(), possible_views_.end(),
                                  [&](const PossibleView& known) { return known.copy == storage; });
  return found == possible_views_.end() ? nullptr : &*found;
}

bool StorageTable::lays_out(const TraceTensor& tensor) const {
  const uint32_t index = tensor.storage_id().index;
  if (is_callers(tensor) || possible_view(index) != nullptr) return false;
  // At dimensions of one element, stride formulas of other orders differ from eager mode's (visible_strides.h).
  if (tensor.type().strides != graph::contiguous_strides(recorder_.graph().pool(), tensor.type().sizes)) return false;
  const graph::Value& value = recorder_.graph().value(storages_[index].value);
  if (value.kind != graph::Value::Kind::Result) return false;
  const graph::Node& node = recorder_.graph().node(value.node);
  const ops::OpDef* def = ops::find(node.op);
  if (def == nullptr || node.through_aten) return false;
  return def->op_class != ops::OpClass::Extern && def->op_class != ops::OpClass::Composite;
}

// Guards that the operator makes a copy. Returns false when it makes a view, according to the hints.
bool StorageTable::guard_copy(const PossibleView& view) {
  const auto holds = [&](const std::pair<sym::ExprId, bool>& answer) {
    const std::optional<int64_t> hint = recorder_.env().hint(answer.first);
    return !hint || (*hint != 0) == answer.second;
  };
  if (!std::all_of(view.answers.begin(), view.answers.end(), holds)) return false;
  for (const auto& [condition, answer] : view.answers)
    if (recorder_.env().hint(condition)) recorder_.env().evaluate(condition, [] { return current_reason(); });
  return true;
}

bool StorageTable::is_alive(uint32_t storage) {
  if (storages_[storage].home != OutputSpec::Kind::GraphOutput) return true;
  return live_.any_of_storage(StorageId{storage});
}

// Called before a write to `storage`: tensors which share memory in eager mode must share it here.
void StorageTable::guard_copies_of(uint32_t storage) {
  for (const PossibleView& view : possible_views_) {
    if (view.copy != storage && view.source != storage) continue;
    if (!is_alive(view.copy == storage ? view.source : view.copy)) continue;
    if (!guard_copy(view))
      abort_capture(BreakKind::AliasedWrite, "a write to memory that two tensors share because a size is 0 or 1");
  }
}

// Whether the memory which copy and source may share is visible in the `escaping` storages.
bool StorageTable::shows(const PossibleView& view, const std::unordered_set<uint32_t>& escaping) const {
  if (storages_[view.source].home != OutputSpec::Kind::GraphOutput || escaping.count(view.source) != 0) return true;
  const PossibleView* origin = possible_view(view.source);
  return origin != nullptr && shows(*origin, escaping);
}

std::optional<int64_t> StorageTable::specialized(sym::ExprId e) {
  return recorder_.env().specialize(e, current_reason());
}

std::optional<std::vector<int64_t>> StorageTable::specialized(const std::vector<sym::ExprId>& exprs) {
  std::vector<int64_t> out;
  for (const sym::ExprId e : exprs) {
    const std::optional<int64_t> value = specialized(e);
    if (!value) return std::nullopt;  // data-dependent sizes
    out.push_back(*value);
  }
  return out;
}

bool gives_source(const ViewChoice& choice, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  const Capture::StepAside aside;
  const at::Tensor source(at::detail::empty_strided_meta(sizes, strides, at::kFloat));
  return choice.as_suggested ? source.suggest_memory_format() == choice.format : source.is_contiguous(choice.format);
}

// The tensor without elements that a chain of views gives of `base`; an undefined one where a view cannot be.
static at::Tensor seen_through(const ViewChain* chain, const at::Tensor& base,
                               const std::function<int64_t(sym::ExprId)>& integer) {
  if (chain == nullptr) return base;
  const at::Tensor parent = seen_through(chain->parent.get(), base, integer);
  const std::optional<c10::OperatorHandle> handle = find_operator(chain->op);
  if (!parent.defined() || !handle) return {};
  torch::jit::Stack stack{parent};
  const auto of_value = [&](graph::ValueId) { return at::Tensor(); };  // views have one tensor, the first argument
  for (size_t i = 1; i < chain->args.size(); ++i)
    stack.push_back(to_torch(chain->args[i], arg_type(handle->schema().arguments()[i]), of_value, integer));
  try {
    handle->callBoxed(stack);
    return stack.at(0).isTensor() ? stack[0].toTensor() : at::Tensor();
  } catch (const std::exception&) {  // of the copy it can be, of the view it cannot
    return {};
  }
}

// A view without elements of the caller's tensor `real`: no formula gives its offset (hold_offset), so the sizes are
// fixed. `number` fixes a size.
static std::optional<AsView> empty_view(const TraceTensor& trace, const at::Tensor& real,
                                        const std::function<std::optional<int64_t>(sym::ExprId)>& number) {
  sym::ExprPool& pool = trace.capture().env().pool();
  std::vector<int64_t> sizes;
  for (const sym::ExprId e : trace.type().sizes) sizes.push_back(number(e).value_or(-1));
  const Capture::StepAside aside;
  const at::Tensor base(at::detail::empty_strided_meta(real.sizes(), real.strides(), real.scalar_type()));
  const at::Tensor seen = seen_through(trace.chain().get(), base, [&](sym::ExprId e) { return number(e).value_or(0); });
  if (!seen.defined() || seen.sizes() != c10::IntArrayRef(sizes)) return std::nullopt;
  AsView out{
      trace.storage_id().index, {}, pool.constant(seen.storage_offset()), false, trace.is_conj(), trace.is_neg()};
  out.of_copy = false;
  for (const int64_t s : seen.strides()) out.strides.push_back(pool.constant(s));
  return out;
}

// A result whose memory shows whether it is a view: when sizes of 0 and 1 decide it, it is given as eager gives it, in
// a program for these sizes alone. nullopt: it is a copy.
std::optional<AsView> StorageTable::as_view(const TraceTensor& trace, const std::unordered_set<uint32_t>& escaping) {
  const PossibleView* view = possible_view(trace.storage_id().index);
  const Storage& storage = storages_[trace.storage_id().index];
  if (view == nullptr && trace.chain() != nullptr && storage.home == OutputSpec::Kind::Input &&
      !recorder_.env().pool().is_const(trace.offset(), 0) &&
      recorder_.env().hint(geometry::numel(recorder_.env(), trace.type().sizes)) == 0)
    return empty_view(trace, recorder_.inputs()[storage.position], [&](sym::ExprId e) { return specialized(e); });
  if (view == nullptr || !shows(*view, escaping) || guard_copy(*view)) return std::nullopt;
  const graph::TensorType& copy = recorder_.graph().type(storages_[view->copy].value);
  const auto sizes = specialized(view->source_type.sizes), strides = specialized(view->source_type.strides),
             copy_sizes = specialized(copy.sizes), own_sizes = specialized(trace.type().sizes);
  const auto start = specialized(view->source_offset);
  if (!sizes || !strides || !copy_sizes || !own_sizes || !start) return std::nullopt;
  if (const PossibleView* origin = possible_view(view->source); origin != nullptr && !guard_copy(*origin)) {
    // The answers for general sizes may miss what makes it a copy at these.
    const auto had = specialized(origin->source_type.sizes), apart = specialized(origin->source_type.strides);
    if (origin->choice.any_view || !had || !apart || gives_source(origin->choice, *had, *apart)) return std::nullopt;
  }
  const bool is_source = !view->choice.any_view;
  if (is_source && !gives_source(view->choice, *sizes, *strides)) return std::nullopt;
  std::optional<std::vector<int64_t>> there = strides;
  if (!is_source) there = at::detail::computeStride(*sizes, *strides, *copy_sizes);
  if (!there) return std::nullopt;
  at::Tensor seen;
  {
    const Capture::StepAside aside;
    const at::Tensor base(at::detail::empty_strided_meta(*copy_sizes, *there, to_torch(copy.dtype)));
    const auto integer = [&](sym::ExprId e) { return specialized(e).value_or(0); };
    seen = seen_through(trace.chain().get(), base, integer);
  }
  if (!seen.defined() || seen.sizes() != c10::IntArrayRef(*own_sizes)) return std::nullopt;
  // The offset counts elements of the view, and the source's offset counts elements of the source.
  const int64_t copy_bytes = byte_size(copy.dtype), own_bytes = byte_size(trace.type().dtype);
  AsView out{view->source,
             {},
             recorder_.env().pool().constant(*start * copy_bytes / own_bytes + seen.storage_offset()),
             is_source && view->of_base && trace.chain() == nullptr,
             trace.is_conj() != view->conjugated,
             trace.is_neg() != view->negated};
  for (const int64_t s : seen.strides()) out.strides.push_back(recorder_.env().pool().constant(s));
  return out;
}

}  // namespace cresset::bridge

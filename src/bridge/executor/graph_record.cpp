// Choosing the steps of a tape that are recorded as graphs, and recording them.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "bridge/executor/extern_arguments.h"
#include "bridge/executor/extern_kernel.h"
#include "bridge/executor/graph_replay.h"

namespace cresset::bridge {
namespace {

using runtime::Home;
using runtime::TensorId;

constexpr int kFewSteps = 4;    // fewer are not worth a graph
constexpr int kMovesOften = 3;  // then a root's address counts as one that moves
constexpr int kMostPlans = 8;
// A copy of so many bytes costs about as much as the launch of an operator from the tape, between two graphs.
constexpr int64_t kCopiedBytesForUse = int64_t{16} << 20;
// Of inputs whose last use is in one graph. They stay until its end, where the tape frees them one by one.
constexpr int64_t kMostReleasedBytes = int64_t{32} << 20;

std::string text_of(const std::exception& e) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&e);
  return of_torch == nullptr ? e.what() : of_torch->what_without_backtrace();
}

// Sets a value for the time of its life.
template <class T>
class Exchanged {
 public:
  Exchanged(T& place, T value) : place_(place), before_(std::exchange(place, std::move(value))) {}
  ~Exchanged() { place_ = std::move(before_); }
  Exchanged(const Exchanged&) = delete;
  Exchanged& operator=(const Exchanged&) = delete;

 private:
  T& place_;
  T before_;
};

}  // namespace

const runtime::ExternCall* GraphReplay::extern_call(uint32_t step) const {
  return std::get_if<runtime::ExternCall>(&context_.program_.steps[step]);
}

bool GraphReplay::runs_on_host(uint32_t step) const {
  return extern_call(step) != nullptr && context_.externs_[context_.steps_[step].index]->runs_on_host();
}

std::string_view GraphReplay::name_of(uint32_t step) const {
  const runtime::ExternCall* const call = extern_call(step);
  return call == nullptr ? "no operator" : graph::op_name(call->op);
}

// The root on whose address a root's depends.
uint32_t GraphReplay::anchor(uint32_t root) const {
  if (context_.slots_[root].home != Home::Arena) return root;
  const TensorId host = context_.plan_.places[root].host;
  return host.valid() ? host.index : root;
}

bool GraphReplay::moves(uint32_t root) const {
  const uint32_t owner = anchor(root);
  return variable_[root] || (moves_[owner] >= kMovesOften && !stands_in_[owner]);
}

// f(root) for all memory that a step's operator allocates, and which other slots continue.
template <class F>
void GraphReplay::for_each_allocated(uint32_t step, F&& f) const {
  const runtime::ExternCall* const call = extern_call(step);
  if (call == nullptr || !context_.externs_[context_.steps_[step].index]->allocates_results()) return;
  for (const TensorId id : call->results) {
    if (!id.valid()) continue;
    for (uint32_t r = context_.slots_[id.index].root; r != TensorId::kNone; r = context_.roots_[r].heir) f(r);
  }
}

std::string_view GraphReplay::obstacle_of_extern(const runtime::ExternCall& call, const ExternKernel& kernel) const {
  if (kernel.runs_on_host()) return "";
  if (!kernel.only_enqueues()) return "the operator may wait for the device";
  bool moved = false;
  const auto look = [&](TensorId id) { moved |= id.valid() && moves(context_.slots_[id.index].root); };
  for_each_argument(call, look);
  for (const TensorId id : kernel.also_touches()) look(id);
  if (!kernel.allocates_results())
    for (const TensorId id : call.results) look(id);
  return moved ? "its memory moves between calls" : "";
}

// Why a step is not recorded; empty: it may be.
std::string_view GraphReplay::obstacle(uint32_t step) const {
  if (from_tape_[step]) return "an earlier recording failed there";
  const BoundContext::BoundStep& bound = context_.steps_[step];
  switch (bound.kind) {
    case BoundContext::StepKind::Launch:
      return context_.launches_[bound.index].memory == &context_.memory_ ? "" : "the launch is on another device";
    case BoundContext::StepKind::Copy:
      return "the write into the caller's tensor comes last";
    case BoundContext::StepKind::Release:
      return "";
    case BoundContext::StepKind::Extern:
      break;
  }
  bool leaves = false;  // memory of the graph must not outlive the call
  for_each_allocated(step,
                     [&](uint32_t root) { leaves |= returned_[root] || context_.slots_[root].home == Home::Fresh; });
  if (leaves) return "the operator allocates memory that outlives the call";
  return obstacle_of_extern(*extern_call(step), *context_.externs_[bound.index]);
}

int64_t GraphReplay::input_bytes_dropped(const BoundContext::BoundStep& step) const {
  int64_t bytes = 0;
  for (uint32_t i = step.drop_begin; i < step.drop_end; ++i) {
    const BoundSlot& slot = context_.slots_[context_.drops_[i]];
    if (slot.home == Home::Input) bytes += slot.numel * static_cast<int64_t>(c10::elementSize(slot.dtype));
  }
  return bytes;
}

// By root: how many operators that can be recorded have it as an argument, or write into it.
std::vector<int> GraphReplay::uses_by_operators() const {
  std::vector<int> uses(context_.slots_.size());
  for (uint32_t s = 0; s < context_.steps_.size(); ++s) {
    const runtime::ExternCall* const call = extern_call(s);
    if (call == nullptr || from_tape_[s]) continue;
    const ExternKernel& kernel = *context_.externs_[context_.steps_[s].index];
    if (!kernel.only_enqueues()) continue;
    const auto use = [&](TensorId id) {
      if (id.valid()) ++uses[anchor(context_.slots_[id.index].root)];
    };
    for_each_argument(*call, use);
    if (!kernel.allocates_results())
      for (const TensorId id : call->results) use(id);
  }
  return uses;
}

void GraphReplay::choose_stand_ins() {
  stand_ins_.clear();
  stand_in_bytes_ = 0;
  stands_in_.assign(context_.slots_.size(), false);
  const std::vector<int> uses = uses_by_operators();
  std::vector<bool> asked(context_.slots_.size());  // for its address
  for (uint32_t s = 0; s < context_.steps_.size(); ++s)
    if (runs_on_host(s))
      for_each_argument(*extern_call(s), [&](TensorId id) { asked[context_.slots_[id.index].root] = true; });
  for (uint32_t r = 0; r < context_.slots_.size(); ++r) {
    const BoundSlot& slot = context_.slots_[r];
    const bool is_input = slot.home == Home::Input && !keeps_place_[r] && !returned_[r] && !asked[r];
    if (moves_[r] < kMovesOften || uses[r] == 0 || (!is_input && slot.home != Home::Fresh)) continue;
    const int64_t bytes = slot.extent();
    if (bytes != 0 && bytes <= kCopiedBytesForUse * uses[r]) add_stand_in(r, bytes);
  }
}

void GraphReplay::add_stand_in(uint32_t root, int64_t bytes) {
  constexpr size_t kAligned = 512;
  const BoundSlot& slot = context_.slots_[root];
  StandIn own{
      .root = root, .offset = stand_in_bytes_, .bytes = static_cast<size_t>(bytes), .tensor = {}, .storage = {}};
  own.storage = slot.memory->borrow(own.bytes);
  own.tensor = slot.memory->over(own.storage, slot.sizes, slot.strides, 0, slot.dtype);
  stand_in_bytes_ += (own.bytes + kAligned - 1) / kAligned * kAligned;
  stands_in_[root] = true;
  stand_ins_.push_back(std::move(own));
}

void GraphReplay::plan(bool releases) {
  parts_.clear();
  if (++plans_ > kMostPlans) return turn_off("arguments of operators keep moving");
  const auto count = static_cast<uint32_t>(context_.steps_.size());
  allocated_.assign(context_.slots_.size(), false);
  variable_.assign(context_.slots_.size(), false);
  choose_stand_ins();
  uint32_t begin = 0;
  int64_t released = 0;
  bool recorded = false;
  for (uint32_t s = 0; s < count; ++s) {
    const std::string_view why_not = obstacle(s);
    const bool may = why_not.empty();
    if (!may) CRESSET_LOG(Graphs, fmt::format("step {} ({}) runs from the tape: {}", s, name_of(s), why_not));
    for_each_allocated(s, [&](uint32_t root) {
      allocated_[root] = true;
      variable_[root] = variable_[root] || !may;
    });
    if (s != begin && (may != recorded || released > kMostReleasedBytes)) {
      add_part(begin, s, recorded);
      begin = s;
      released = 0;
    }
    recorded = may;
    if (releases) released += input_bytes_dropped(context_.steps_[s]);
  }
  if (begin != count) add_part(begin, count, recorded);
  stale_ = false;
  if (std::none_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.recorded; }))
    turn_off("no step can be recorded");
}

// Steps of neighbouring parts that are run from the tape become one part.
void GraphReplay::add_part(uint32_t begin, uint32_t end, bool recorded) {
  int work = 0;
  for (uint32_t s = begin; s < end; ++s)
    work += context_.steps_[s].kind != BoundContext::StepKind::Release && !runs_on_host(s);
  if (work < kFewSteps && recorded) {
    recorded = false;
    for (uint32_t s = begin; s < end; ++s) for_each_allocated(s, [&](uint32_t root) { variable_[root] = true; });
  }
  if (!recorded && !parts_.empty() && !parts_.back().recorded) {
    parts_.back().end = end;
    return;
  }
  parts_.push_back({.begin = begin, .end = end, .recorded = recorded});
}

// ---- recording

// The arguments of operators which other parts or the caller supply.
void GraphReplay::expect_arguments(Part& part) const {
  std::vector<bool> seen(context_.slots_.size());
  for (uint32_t s = part.begin; s < part.end; ++s) {
    const runtime::ExternCall* const call = extern_call(s);
    if (call == nullptr || runs_on_host(s)) continue;
    const auto look = [&](TensorId id) {
      const uint32_t root = id.valid() ? context_.slots_[id.index].root : TensorId::kNone;
      if (root == TensorId::kNone || seen[root]) return;
      seen[root] = true;
      part.expected.emplace_back(root, context_.roots_[root].base);
    };
    for_each_argument(*call, look);
    for (const TensorId id : context_.externs_[context_.steps_[s].index]->also_touches()) look(id);
    for_each_allocated(s, [&](uint32_t root) { seen[root] = true; });
    for (const TensorId id : call->results) look(id);
  }
}

bool GraphReplay::record(Part& part) {
  as_usual_ = false;
  part.expected.clear(), part.made.clear(), part.updated.clear();
  expect_arguments(part);
  made_here_.assign(context_.slots_.size(), false);
  uint32_t step = part.begin;
  try {
    Recording recording(*memory_.operator->(), gpu_);
    const Exchanged<void*> enqueues_there(context_.launching_.stream, recording.stream());
    for (; step < part.end; ++step) record_step(step, part, recording.stream());
    part.graph = recording.end();
  } catch (const std::exception& e) {
    // Operators may refuse to be recorded. Nothing has run: all of it runs from the tape.
    CRESSET_LOG(Graphs, fmt::format("step {} is not recorded: {}", step, text_of(e)));
    step < part.end ? from_tape_[step] = true : part.recorded = false;
    stale_ = stale_ || step < part.end;
    return false;
  }
  for (uint32_t s = part.begin; s < part.end; ++s)
    for_each_allocated(s, [&](uint32_t root) { part.made.emplace_back(root, context_.roots_[root].base); });
  CRESSET_LOG(Graphs, fmt::format("steps {} to {} are a graph of {} nodes; {} launches may change", part.begin,
                                  part.end - 1, part.graph->size(), part.updated.size()));
  return true;
}

void GraphReplay::record_step(uint32_t index, Part& part, runtime::Stream stream) {
  const BoundContext::BoundStep& step = context_.steps_[index];
  context_.position_ = step.position;
  if (step.kind == BoundContext::StepKind::Launch)
    record_launch(index, part, stream);
  else if (step.kind == BoundContext::StepKind::Extern && !runs_on_host(index))
    context_.externs_[step.index]->run(context_);
  for_each_allocated(index, [&](uint32_t root) { made_here_[root] = true; });
  // Other memory is needed until the graph runs.
  for (uint32_t i = step.drop_begin; i < step.drop_end; ++i)
    if (const uint32_t root = context_.drops_[i]; made_here_[root]) context_.roots_[root].owner.reset();
}

void GraphReplay::record_launch(uint32_t step, Part& part, runtime::Stream stream) {
  const uint32_t index = context_.steps_[step].index;
  const BoundContext::BoundLaunch& launch = context_.launches_[index];
  runtime::GpuLaunches& launches = *launch.kernel->gpu_launches(context_.scratch_of(launch));
  Nodes own{.launch = index,
            .nodes = {},
            .function = launches.function,
            .config = launches.config,
            .parameters = launches.parameters,
            .last = launches.last};
  for (const int64_t last : launches.last) {
    launches.parameters.back() = last;
    gpu_.launch(launches.function, launches.config, launches.parameters, stream);
    own.nodes.push_back(gpu_.last_recorded(stream));
    CRESSET_CHECK(own.nodes.back() != nullptr, "a launch that was recorded is no node");
  }
  if (may_change(step)) part.updated.push_back(std::move(own));
}

// Whether an address of the launch is none of the arena, where all graphs of the context lie alike.
bool GraphReplay::may_change(uint32_t step) const {
  const auto is_apart = [this](TensorId id) {
    const uint32_t root = context_.slots_[id.index].root;
    if (context_.slots_[root].home == Home::Reports) return false;
    return context_.slots_[root].home != Home::Arena || allocated_[root] || anchor(root) != root;
  };
  const auto& buffers = std::get<runtime::Launch>(context_.program_.steps[step]).buffers;
  const std::optional<runtime::ArenaPlan::Place>& scratch = context_.launches_[context_.steps_[step].index].scratch;
  return std::any_of(buffers.begin(), buffers.end(), is_apart) || (scratch && scratch->host.valid());
}

}  // namespace cresset::bridge

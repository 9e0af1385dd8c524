// Deciding whether calls are served by graphs, and running them.
#include "bridge/executor/graph_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "base/check.h"
#include "base/log.h"
#include "bridge/device/cuda/library_settings.h"
#include "bridge/executor/extern_kernel.h"

namespace cresset::bridge {
namespace {

using runtime::Home;

constexpr int kCallsFromTape = 3;  // the first compiles and loads, the others tell which addresses move
constexpr int kTimedReplays = 3;
// Graphs pay where issuing the launches takes at least this part of the device's time.
constexpr double kBoundByLaunches = 0.7;
constexpr double kLosing = 1.1;  // slower graphs than this multiple of the tape's time are dropped
// The most memory held by graphs between calls where nobody asked for graphs.
constexpr size_t kMostBytesUnasked = size_t{256} << 20;

std::atomic<int64_t> recordings, replays, node_updates, misses;

}  // namespace

GraphCounters graph_counters() { return {recordings, replays, node_updates, misses}; }
void reset_graph_counters() { recordings = replays = node_updates = misses = 0; }

GraphReplay::GraphReplay(BoundContext& context, runtime::GpuDevice& gpu, c10::Device device, driver::CudaGraphs wanted)
    : context_(context),
      gpu_(gpu),
      device_(device),
      wanted_(wanted),
      last_addresses_(context.roots_.size()),
      moves_(context.roots_.size()),
      from_tape_(context.steps_.size()) {
  returned_.resize(context.slots_.size());
  keeps_place_.resize(context.slots_.size());
  for (const BoundContext::BoundCopy& copy : context.copies_) keeps_place_[context.slots_[copy.to.index].root] = true;
  for (const runtime::TensorId id : context.program_.outputs) returned_[context.slots_[id.index].root] = true;
}

GraphReplay::~GraphReplay() {
  for (const runtime::Event event : events_) {
    if (event == nullptr) continue;
    try {
      gpu_.destroy(event);
    } catch (const runtime::DeviceError&) {  // the device failed before
    }
  }
}

void GraphReplay::turn_off(std::string why) {
  CRESSET_LOG(Graphs, why);
  off_ = std::move(why);
  drop();
}

void GraphReplay::drop() {
  for (Part& part : parts_) part.graph.reset();
}

size_t GraphReplay::nodes() const {
  size_t nodes = 0;
  for (const Part& part : parts_) nodes += part.graph == nullptr ? 0 : part.graph->size();
  return nodes;
}

void GraphReplay::give_up_for_a_while() {
  constexpr int kCalls = 32, kMostDoublings = 10;
  drop();
  next_recording_ = calls_ + (kCalls << std::min(given_up_++, kMostDoublings));
}

// ---- deciding

bool GraphReplay::wanted_now() {
  if (!off_.empty() || calls_ <= kCallsFromTape || calls_ < next_recording_) return false;
  if (wanted_ == driver::CudaGraphs::Always) return true;
  if (graphs_.calls >= kTimedReplays && graphs_.ms() > kLosing * tape_.ms()) {
    turn_off(fmt::format("graphs take {:.3f} ms a call, the tape {:.3f}", graphs_.ms(), tape_.ms()));
    return false;
  }
  if (tape_.calls < kCallsFromTape - 1) return false;  // the device has not told yet
  if (tape_.issue_ms >= kBoundByLaunches * tape_.device_ms) return true;
  turn_off(fmt::format("launches do not bound the call: {:.3f} ms to issue, {:.3f} ms on the device", tape_.issue_ms,
                       tape_.device_ms));
  return false;
}

bool GraphReplay::start(size_t arena_bytes, bool releases) {
  read_timing();
  ++calls_;
  const bool wanted = wanted_now();
  if (wanted && stale_) plan(releases);
  constexpr size_t kAligned = 512;
  arena_bytes_ = (arena_bytes + kAligned - 1) / kAligned * kAligned;
  const size_t bytes = arena_bytes_ + stand_in_bytes_;
  if (wanted && wanted_ == driver::CudaGraphs::Auto && bytes > kMostBytesUnasked)
    turn_off(fmt::format("they would hold {} bytes between calls", bytes));
  if (!wanted || !off_.empty()) {
    if (off_.empty() && calls_ > 1) begin_timing(tape_);
    return false;
  }
  if (!take_memory(bytes)) return false;
  const bool other_memory = memory_->generation() != std::exchange(generation_, memory_->generation());
  const uint64_t settings = library_settings();
  if (settings != std::exchange(settings_, settings) || other_memory) drop();
  if (graphs_.calls < kTimedReplays && nodes() != 0) begin_timing(graphs_);
  return true;
}

bool GraphReplay::take_memory(size_t bytes) {
  try {
    memory_ = GraphMemory::hold(device_, gpu_);
    if (memory_) arena_ = memory_->arena(std::max<size_t>(bytes, 1));
  } catch (const std::exception& e) {
    memory_ = GraphMemory::Hold(nullptr);
    turn_off(e.what());
  }
  return static_cast<bool>(memory_);
}

// Events tell without waiting for the device: the times are read before a later call, once they are there.
void GraphReplay::begin_timing(Timing& timing) {
  if (timed_ != nullptr) return;
  if (events_[0] == nullptr)
    for (runtime::Event& event : events_) event = gpu_.make_event();
  timed_ = &timing;
  timing_now_ = as_usual_ = true;
  gpu_.record(events_[0], context_.launching_.stream);
  issued_from_ = std::chrono::steady_clock::now();
}

void GraphReplay::read_timing() {
  if (timed_ == nullptr || !gpu_.is_done(events_[1])) return;
  timed_->device_ms = std::min(timed_->device_ms, gpu_.milliseconds_between(events_[0], events_[1]));
  timed_->issue_ms = std::min(timed_->issue_ms, issue_ms_);
  ++timed_->calls;
  timed_ = nullptr;
}

void GraphReplay::finish() {
  if (timing_now_) {
    timing_now_ = false;
    issue_ms_ = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - issued_from_).count();
    try {
      gpu_.record(events_[1], context_.launching_.stream);
    } catch (const runtime::DeviceError&) {  // the call has raised it, too
      as_usual_ = false;
    }
    if (!as_usual_) timed_ = nullptr;
  }
  if (!memory_) note_addresses();
  memory_ = GraphMemory::Hold(nullptr);
}

// Counts the moves of inputs and outputs.
void GraphReplay::note_addresses() {
  if (!off_.empty() || calls_ > kCallsFromTape) return;
  for (size_t r = 0; r < last_addresses_.size(); ++r) {
    const Home home = context_.slots_[r].home;
    if (home != Home::Input && home != Home::Fresh) continue;
    char* const now = context_.roots_[r].base;
    if (calls_ > 1 && now != last_addresses_[r]) ++moves_[r];
    last_addresses_[r] = now;
  }
}

std::string GraphReplay::state() const {
  if (!off_.empty()) return "off: " + off_;
  if (nodes() == 0) return "not recorded yet";
  const auto recorded = std::count_if(parts_.begin(), parts_.end(), [](const Part& p) { return p.graph != nullptr; });
  const auto from_tape = std::count_if(parts_.begin(), parts_.end(), [](const Part& p) { return !p.recorded; });
  return fmt::format("{} graphs with {} nodes, {} parts from the tape", recorded, nodes(), from_tape);
}

// ---- running

void GraphReplay::run() {
  use_stand_ins();
  for (Part& part : parts_) run_part(part);
  deliver_results();
}

void GraphReplay::use_stand_ins() {
  for (StandIn& own : stand_ins_) {
    BoundRoot& root = context_.roots_[own.root];
    BoundSlot& slot = context_.slots_[own.root];
    char* const place = arena_ + arena_bytes_ + own.offset;
    slot.memory->point(*own.storage, place);
    if (slot.home == Home::Input) gpu_.copy(place, root.base, own.bytes, context_.launching_.stream);
    root.owner = own.tensor;
    slot.tensor = &root.owner;
    context_.set_root(own.root, place);
    if (slot.home == Home::Fresh) context_.allocate_host(own.root);  // and the addresses of slots inside
  }
}

void GraphReplay::deliver_results() {
  for (const StandIn& own : stand_ins_) {
    BoundRoot& root = context_.roots_[own.root];
    const BoundSlot& slot = context_.slots_[own.root];
    if (slot.home != Home::Fresh || !root.owner.is_same(own.tensor)) continue;
    root.owner = slot.memory->allocate(slot.sizes, slot.strides, slot.dtype);
    gpu_.copy(root.owner.mutable_data_ptr(), root.base, own.bytes, context_.launching_.stream);
  }
}

void GraphReplay::run_steps(uint32_t begin, uint32_t end, bool on_host) {
  for (uint32_t s = begin; s < end; ++s)
    if (on_host || !runs_on_host(s)) context_.run_step(context_.steps_[s]);
}

void GraphReplay::run_host_steps(const Part& part) {
  for (uint32_t s = part.begin; s < part.end; ++s)
    if (runs_on_host(s)) context_.externs_[context_.steps_[s].index]->run(context_);
}

void GraphReplay::run_part(Part& part) {
  if (!part.recorded) return run_steps(part.begin, part.end);
  allocate_results(part);
  run_host_steps(part);
  if (part.graph == nullptr) {
    if (!record(part)) return run_steps(part.begin, part.end, /*on_host=*/false);
    ++recordings;
    ++context_.stats_.recordings;
  } else {
    if (!addresses_hold(part)) return miss(part);
    for (const auto& [root, address] : part.made) context_.set_root(root, address);
    if (!update(part)) return miss(part);
  }
  part.graph->launch(context_.launching_.stream);
  ++replays;
  drop_roots(part);
}

// What the steps of a graph write outside of it lies in ordinary memory.
void GraphReplay::allocate_results(const Part& part) {
  for (uint32_t s = part.begin; s < part.end; ++s) {
    const BoundContext::BoundStep& step = context_.steps_[s];
    context_.allocate_fresh(step.fresh_begin, step.fresh_end);
    const runtime::ExternCall* const call = extern_call(s);
    if (call == nullptr) continue;
    const auto allocate = [&](runtime::TensorId id) {
      if (id.valid() && context_.slots_[id.index].home == Home::Fresh) context_.planned(id);
    };
    for (const runtime::TensorId id : call->results) allocate(id);
    for (const runtime::TensorId id : context_.externs_[step.index]->also_touches()) allocate(id);
  }
}

bool GraphReplay::addresses_hold(const Part& part) {
  bool hold = true;
  for (const auto& [root, address] : part.expected) {
    if (context_.roots_[root].base == address) continue;
    hold = false;
    ++moves_[anchor(root)];
  }
  return hold;
}

// The graph is recorded again by the next call, without the operators whose arguments keep moving.
void GraphReplay::miss(Part& part) {
  ++misses;
  as_usual_ = false;
  part.graph.reset();
  for (const auto& [root, address] : part.expected) stale_ = stale_ || moves(root);
  run_steps(part.begin, part.end, /*on_host=*/false);
}

// Gives kernels the addresses of this call. false: one is launched otherwise than in the graph.
bool GraphReplay::update(Part& part) {
  for (Nodes& own : part.updated) {
    const BoundContext::BoundLaunch& launch = context_.launches_[own.launch];
    runtime::GpuLaunches& now = *launch.kernel->gpu_launches(context_.scratch_of(launch));
    if (now.last.size() != own.nodes.size()) return false;
    const auto given = std::span(now.parameters).first(now.parameters.size() - 1);
    const bool same = now.last == own.last && std::equal(given.begin(), given.end(), own.parameters.begin()) &&
                      now.function.handle == own.function.handle && now.config == own.config;
    if (same) continue;
    for (size_t i = 0; i < own.nodes.size(); ++i) {
      now.parameters.back() = now.last[i];
      part.graph->update(own.nodes[i], now.function, now.config, now.parameters);
      ++node_updates;
    }
    own.function = now.function, own.config = now.config, own.parameters = now.parameters, own.last = now.last;
  }
  return true;
}

void GraphReplay::drop_roots(const Part& part) {
  for (uint32_t s = part.begin; s < part.end; ++s) {
    const BoundContext::BoundStep& step = context_.steps_[s];
    for (uint32_t i = step.drop_begin; i < step.drop_end; ++i) context_.roots_[context_.drops_[i]].owner.reset();
  }
}

}  // namespace cresset::bridge

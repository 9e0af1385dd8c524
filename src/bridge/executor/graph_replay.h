// CUDA graphs over the tape of a bound context. Consecutive steps are recorded as one graph and replayed by later
// calls; the steps between run from the tape as before. Kernels' launches are updated where addresses changed (inputs,
// outputs) or numbers of the host did (seeds of random numbers); operators of libraries hold their addresses, so a
// graph runs only while these are the same, and an operator whose arguments moved before is left to the tape. Results
// never lie in memory of a graph.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/compile_options.h"
#include "bridge/device/cuda/graph_memory.h"
#include "bridge/executor/executor_context.h"
#include "runtime/device.h"

namespace cresset::bridge {

// Events in the process since its start or the last reset.
struct GraphCounters {
  int64_t recordings = 0;    // graphs recorded
  int64_t replays = 0;       // runs of a graph
  int64_t node_updates = 0;  // launches with other addresses than in the last run
  int64_t misses = 0;        // runs of a graph's steps from the tape, since an operator's arguments had moved
};
GraphCounters graph_counters();
void reset_graph_counters();

class GraphReplay {
 public:
  GraphReplay(BoundContext& context, runtime::GpuDevice& gpu, c10::Device device, driver::CudaGraphs wanted);
  ~GraphReplay();

  // Before a call: whether run() serves it. Then arena() is the memory for intermediates until finish(). `releases`:
  // the inputs' memory is given back after their last use.
  bool start(size_t arena_bytes, bool releases);
  char* arena() const { return arena_; }
  void run();
  // After any call, also a failed one.
  void finish();

  size_t nodes() const;  // of its graphs
  // Drops the graphs. They are recorded again after many calls, each time after more.
  void give_up_for_a_while();
  // For people: what is done, or why nothing is.
  std::string state() const;

 private:
  // A kernel's launches within a graph, as they were set last.
  struct Nodes {
    uint32_t launch;
    std::vector<runtime::GraphNode> nodes;
    runtime::DeviceFunction function;
    runtime::LaunchConfig config;
    std::vector<int64_t> parameters, last;  // as in GpuLaunches
  };
  // A root and its address when the graph was recorded.
  using Address = std::pair<uint32_t, char*>;
  // Consecutive steps.
  struct Part {
    uint32_t begin, end;
    bool recorded;  // false: always run from the tape
    std::unique_ptr<runtime::LaunchGraph> graph;
    std::vector<Address> expected;  // of operators' arguments
    std::vector<Address> made;      // of results which operators allocate
    std::vector<Nodes> updated;     // launches whose addresses may change
  };
  // Memory in the place of an input's or output's own.
  struct StandIn {
    uint32_t root;
    size_t offset, bytes;  // behind the arena
    at::Tensor tensor;     // over it
    c10::intrusive_ptr<c10::StorageImpl> storage;
  };
  // The least times of several calls.
  struct Timing {
    double device_ms = kNever, issue_ms = kNever;
    int calls = 0;
    double ms() const { return std::max(device_ms, issue_ms); }
    static constexpr double kNever = 1e30;
  };

  // Deciding (graph_replay.cpp).
  bool wanted_now();
  bool take_memory(size_t arena_bytes);
  void begin_timing(Timing& timing);
  void read_timing();
  void note_addresses();
  void turn_off(std::string why);
  void drop();  // graphs, which are recorded again when they are wanted

  // Running (graph_replay.cpp).
  // Without `on_host`: the steps on the host have run.
  void run_steps(uint32_t begin, uint32_t end, bool on_host = true);
  void run_host_steps(const Part& part);
  void run_part(Part& part);
  void allocate_results(const Part& part);
  bool addresses_hold(const Part& part);
  void miss(Part& part);
  bool update(Part& part);
  void drop_roots(const Part& part);

  void use_stand_ins();
  void deliver_results();

  // Choosing the steps, and recording them (graph_record.cpp).
  void plan(bool releases);
  void choose_stand_ins();
  std::vector<int> uses_by_operators() const;
  void add_stand_in(uint32_t root, int64_t bytes);
  const runtime::ExternCall* extern_call(uint32_t step) const;
  bool runs_on_host(uint32_t step) const;  // and so before the launches of its part
  uint32_t anchor(uint32_t root) const;
  bool moves(uint32_t root) const;
  std::string_view name_of(uint32_t step) const;  // the operator's
  std::string_view obstacle(uint32_t step) const;
  std::string_view obstacle_of_extern(const runtime::ExternCall& call, const ExternKernel& kernel) const;
  template <class F>
  void for_each_allocated(uint32_t step, F&& f) const;
  int64_t input_bytes_dropped(const BoundContext::BoundStep& step) const;
  void add_part(uint32_t begin, uint32_t end, bool recorded);
  bool record(Part& part);
  void record_step(uint32_t step, Part& part, runtime::Stream stream);
  void record_launch(uint32_t step, Part& part, runtime::Stream stream);
  bool may_change(uint32_t step) const;  // of a launch
  void expect_arguments(Part& part) const;

  BoundContext& context_;
  runtime::GpuDevice& gpu_;
  const c10::Device device_;
  const driver::CudaGraphs wanted_;
  std::string off_;  // why there are no graphs for good; empty: there may be
  int calls_ = 0;
  int next_recording_ = 0;  // the call from which on graphs are wanted again
  int given_up_ = 0;        // how often they were given up
  Timing tape_, graphs_;
  Timing* timed_ = nullptr;  // of the call whose events are pending
  bool timing_now_ = false;
  bool as_usual_ = true;  // the timed call recorded nothing and missed nothing
  std::array<runtime::Event, 2> events_{};
  std::chrono::steady_clock::time_point issued_from_;
  double issue_ms_ = 0;

  std::vector<char*> last_addresses_;  // by root, after the last call
  std::vector<int> moves_;             // by root: how often its address differed between calls
  std::vector<bool> returned_;         // by root: it outlives the call
  std::vector<bool> from_tape_;        // by step: recording it failed
  // By root, of the plan: an operator allocates it; it does so in a step run from the tape, or lies in such memory.
  std::vector<bool> allocated_, variable_;
  std::vector<bool> made_here_;    // by root: in the recording, so far
  std::vector<bool> stands_in_;    // by root
  std::vector<bool> keeps_place_;  // by root: an input that is written or returned
  std::vector<StandIn> stand_ins_;
  size_t stand_in_bytes_ = 0;
  std::vector<Part> parts_;
  int plans_ = 0;
  bool stale_ = true;  // parts_ have to be planned
  GraphMemory::Hold memory_{nullptr};
  int64_t generation_ = -1;  // of the memory with which parts_ were recorded
  uint64_t settings_ = 0;    // of libraries, likewise
  char* arena_ = nullptr;
  size_t arena_bytes_ = 0;  // without stand-ins
};

}  // namespace cresset::bridge

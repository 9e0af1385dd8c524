// One capture: while a thread has entered it, every operator which reaches a backend is appended to a graph.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "bridge/capture/capture_abort.h"
#include "bridge/capture/capture_client.h"
#include "bridge/capture/captured.h"
#include "bridge/capture/gradient_recorder.h"
#include "bridge/capture/graph_recorder.h"
#include "bridge/capture/input_proxy.h"
#include "bridge/capture/live_tensors.h"
#include "bridge/capture/source_lines.h"
#include "bridge/capture/storage_table.h"
#include "bridge/capture/subgraph_recorder.h"
#include "bridge/capture/trace_tensor.h"
#include "graph/graph.h"
#include "runtime/program.h"

namespace cresset::bridge {

class Capture : public std::enable_shared_from_this<Capture> {
 public:
  explicit Capture(bool dynamic);
  ~Capture();

  static Capture* current();  // the capture of this thread; nullptr when the thread has none
  static Capture* exchange_current(Capture* other);

  // RAII: enters the capture, and leaves it on destruction. Scopes nest. Dispatch state is restored exactly.
  class Scope {
   public:
    explicit Scope(Capture& capture);
    ~Scope();
    Scope(const Scope&) = delete;
    // Continues with another capture, in the state which torch's modes have now.
    void switch_to(Capture& next);

   private:
    Capture* previous_;
    c10::impl::LocalDispatchKeySet saved_;
    bool autocast_cache_;
    bool autograd_threads_;  // nodes of GPUs run in threads of their own
  };
  // Stops capturing on this thread until the scope switches to another capture. Must not be called in the middle of an
  // operator, because torch's guards around the operator restore the dispatch state which they found.
  static void leave_dispatch_state();

  // RAII inside a scope: operators run for real until destruction.
  class StepAside {
   public:
    StepAside();
    ~StepAside();

   private:
    c10::impl::LocalDispatchKeySet saved_;
  };

  // The parts of the capture, each with its own header.
  GraphRecorder& recorder() { return recorder_; }
  const GraphRecorder& recorder() const { return recorder_; }
  StorageTable& storages() { return storages_; }
  const StorageTable& storages() const { return storages_; }
  SubgraphRecorder& subgraphs() { return subgraphs_; }
  const SubgraphRecorder& subgraphs() const { return subgraphs_; }
  GradientRecorder& gradients() { return gradients_; }
  LiveTensors& live() { return live_; }
  graph::Graph& graph() const { return recorder_.graph(); }
  sym::ShapeEnv& env() const { return recorder_.env(); }
  const std::shared_ptr<sym::ShapeEnv>& env_ptr() const { return graph().env_ptr(); }
  // The program. A capture without a client has one which answers for a program without Python.
  CaptureClient& client() const;
  void set_client(std::shared_ptr<CaptureClient> client) { client_ = std::move(client); }

  bool failed() const { return failed_; }  // an operator of the capture raised: later results do not exist
  void note_failure() { failed_ = true; }
  bool says_history() const;  // is_asked_for_history() of an input proxy or a view

  // Returns the proxy tensor of a caller's tensor. `marks` has an entry for each dimension, or is empty.
  at::Tensor add_input(const at::Tensor& real, std::string name, const std::vector<DimMark>& marks);
  // Makes the caller's tensor an input proxy until the capture is closed (input_proxy.h).
  void add_input_proxy(const at::Tensor& real, std::string name, const std::vector<DimMark>& marks);
  // Gives a wrapper tensor the sizes of `proxy` until the capture is closed (input_proxy.h).
  void add_wrapper(const at::Tensor& wrapper, const at::Tensor& proxy);
  // Makes a caller's float a symbol. The input is `real`, a tensor which holds the number.
  c10::SymFloat add_float_argument(const at::Tensor& real, std::string name);
  // Bit mask of the float arguments which a decision examined: the program is specialized to their values.
  uint64_t specialized_floats = 0;
  // Whether sizes inside compared floats stay symbolic. If so, no condition on sizes alone implies a right program.
  bool sizes_stay_free = true;
  // Input scalars: decisions on floats may be guards (first flag); integers become symbols, and a guard may specialize
  // a bool or float (second). is_later_segment: earlier segments made the inputs, so decisions on them are no guards.
  bool decides_on_input_scalars = false, specializes_input_scalars = false, is_later_segment = false;
  // Records how arguments and input scalars produce the number in a float64 tensor with a single element.
  void note_number(TraceTensor& tensor, FloatExpr::Ref made_by) {
    recorder_.note_number(value_of(tensor), std::move(made_by));
  }
  // Returns the proxy tensor of a real tensor met during the capture. The compiled code keeps the real tensor alive.
  at::Tensor lift(const at::Tensor& real);
  void name_constant(const at::Tensor& real, std::string name) { names_[real.unsafeGetTensorImpl()] = std::move(name); }

  // The value of the tensor's memory now, including writes through other views of its storage.
  graph::ValueId memory_of(TraceTensor& tensor);
  // The value which the tensor reads from its memory: conjugated or negated for a view with these bits.
  graph::ValueId value_of(TraceTensor& tensor) { return read(tensor, memory_of(tensor)); }
  // In-place write: `value` (same sizes and dtype as the tensor) becomes the tensor's contents.
  void write(TraceTensor& tensor, graph::ValueId value);
  at::Tensor make_result(graph::ValueId value);  // with a fresh storage
  // `within` replaces the extents of the parent's view chain.
  at::Tensor make_view(TraceTensor& parent, graph::OpId op, std::vector<graph::Arg> args, graph::ValueId value,
                       sym::ExprId offset, std::optional<std::vector<Extent>> within = std::nullopt);
  // The base of a view, with its present contents and without the conjugate and negative bits.
  at::Tensor base_of(const TraceTensor& view);
  // Result of a small `empty` of constant size. It has real memory, which shows writes made behind the dispatcher.
  at::Tensor make_watched_empty(graph::ValueId value);

  // The operator which ended the capture received arguments of unfitting dtypes or sizes.
  bool arguments_did_not_fit = false;

  std::string remark;  // appended to the reason of the next graph break

  // ---- The end. An open capture defers operators; after it is closed, operators run eagerly.

  // Closes the capture early: deferred operators run now, and every live trace tensor becomes real in place. An error
  // of a deferred operator is kept for rethrow_deferred(). No-op when closed.
  [[gnu::cold]] void flush(const BreakReason& why);
  // Whether a flush asks the client for an orderly end. A flush asks once.
  bool ends_in_order() const { return ends_in_order_; }
  void let_end_in_order(bool may) { ends_in_order_ = may; }
  bool closed() const { return closed_; }
  BreakReason located(BreakReason why) const;                    // adds the user's line, while open
  const BreakReason& why_closed() const { return why_closed_; }  // reason of the flush
  void rethrow_deferred();                                       // throws at most once

  // The orderly end: close(), finish(outputs), compile, run, and settle() with the program's results. close() releases
  // the input proxies and returns the trace tensors which are referenced elsewhere; held() computes these references.
  std::vector<at::Tensor> held();
  std::vector<at::Tensor> close();
  // `runs_once` is for interpret() alone, which raises where the program raises.
  Captured finish(const std::vector<at::Tensor>& outputs, bool runs_once = false);
  // Runs a finished capture operator by operator on its own tensors, for programs which run only once.
  std::vector<at::Tensor> interpret(Captured& captured);
  static void settle(const std::vector<at::Tensor>& trace, const std::vector<at::Tensor>& real);
  void forget_inputs();  // called when all captured operators have run
  // The specifications of a subgraph's results, whose values are appended to `outputs`.
  std::vector<OutputSpec> outputs_of_subgraph(const std::vector<at::Tensor>& tensors,
                                              std::vector<graph::ValueId>& outputs);
  struct Done {
    size_t writes = 0, storages = 0, draws = 0;
  };
  Done done() const { return {storages_.written().size(), storages_.size(), recorder_.draws()}; }
  // Whether, since `before`, an older tensor was written, a random number drawn, or another library's operator called.
  bool has_effects_since(const Done& before) const;

  DType default_dtype;
  bool symbolic_numbers = false;           // integers read from tensors are symbols
  bool symbolic_booleans = false;          // the same for booleans
  std::vector<sym::ExprId> asked_numbers;  // data-dependent numbers which the segment must compute
  int recording = 0;                       // depth of running capture kernels; these flush by themselves
  // Sets the graph's current location: the running line of the program, or the line whose operators are differentiated.
  // Called before an operator is recorded.
  void set_location();
  std::vector<graph::ValueId> float_numbers;  // Python floats among the current operator's arguments
  Captured counters;                          // only the counters are used while capturing

 private:
  struct Geometry {
    graph::TensorType type;
    InputLayout layout;
  };
  at::Tensor make_tensor(StorageId storage, ViewChainPtr chain, graph::ValueId value, sym::ExprId offset);
  at::Tensor adopt(const at::Tensor& real, graph::ValueId base_value, OutputSpec::Kind home, uint32_t position);
  Geometry input_geometry(const at::Tensor& real, uint32_t position, const std::string& name,
                          const std::vector<DimMark>& marks);
  void add_mutations();
  // Converts between memory and the value which a tensor reads; the conversion is its own inverse.
  graph::ValueId read(const TraceTensor& tensor, graph::ValueId memory);
  struct Results;  // used while outputs are gathered
  OutputSpec output_of(const at::Tensor& output, Results& results);

  bool dynamic_;
  LiveTensors live_;
  GraphRecorder recorder_{*this};
  StorageTable storages_{recorder_, live_};
  SubgraphRecorder subgraphs_{*this};
  GradientRecorder gradients_{*this};
  std::shared_ptr<CaptureClient> client_;
  ForwardLines forward_lines_;
  uint32_t float_arguments_ = 0;
  std::unordered_map<c10::TensorImpl*, std::string> names_;
  std::vector<InputProxy> input_proxies_, wrappers_;
  bool closed_ = false, ends_in_order_ = false, failed_ = false;
  BreakReason why_closed_;
  std::exception_ptr deferred_error_;
};

}  // namespace cresset::bridge

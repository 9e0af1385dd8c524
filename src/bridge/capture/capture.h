// One capture: while a thread has entered it, every operator which reaches a backend is appended to a graph.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "bridge/capture/capture_abort.h"
#include "bridge/capture/captured.h"
#include "bridge/capture/input_proxy.h"
#include "bridge/capture/source_lines.h"
#include "bridge/capture/trace_tensor.h"
#include "bridge/symbolic/view_or_copy.h"
#include "graph/graph.h"
#include "ops/op_def.h"
#include "ops/shape_memo.h"
#include "runtime/program.h"

namespace torch::autograd {
struct Node;
}

namespace cresset::bridge {

class History;  // autograd_history.h
class RaisedByData;

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

  graph::Graph& graph() { return *graph_; }
  bool failed() const { return failed_; }  // an operator of the capture raised: later results do not exist
  void note_failure() { failed_ = true; }
  bool says_history() const;                            // is_asked_for_history() of an input proxy or a view
  bool has_graph() const { return graph_ != nullptr; }  // false once the capture is finished
  sym::ShapeEnv& env() { return graph_->env(); }
  const std::shared_ptr<sym::ShapeEnv>& env_ptr() const { return graph_->env_ptr(); }

  // Returns the proxy tensor of a caller's tensor. `marks` has an entry for each dimension, or is empty.
  at::Tensor add_input(const at::Tensor& real, std::string name, const std::vector<DimMark>& marks);
  // Makes the caller's tensor an input proxy until the capture is closed (input_proxy.h).
  void add_guest(const at::Tensor& real, std::string name, const std::vector<DimMark>& marks);
  // Gives a wrapper tensor the sizes of `stand_in` until the capture is closed (input_proxy.h).
  void add_wrapper(const at::Tensor& wrapper, const at::Tensor& stand_in);
  c10::SymInt add_int_argument(int64_t value, std::string name);
  // Makes a caller's float a symbol. The input is `real`, a tensor which holds the number.
  c10::SymFloat add_float_argument(const at::Tensor& real, std::string name);
  // Bit mask of the float arguments which a decision examined: the program is specialized to their values.
  uint64_t pinned_floats = 0;
  // Whether sizes inside compared floats stay symbolic. If so, no condition on sizes alone implies a right program.
  bool sizes_stay_free = true;
  // Returns how two floats compare in this call and guards the answer. nullopt: there are too many guards of this kind.
  std::optional<bool> decide(const FloatExpr::Ref& left, FloatRelation relation, const FloatExpr::Ref& right,
                             OfData of_data);
  // Returns the derived integer of floats and sizes. nullopt: the number is not whole, or there are too many.
  std::optional<sym::ExprId> computed_number(const FloatExpr::Ref& made);
  // Input scalars: decisions on floats may be guards (first flag); integers become symbols, and a guard may specialize
  // a bool or float (second). is_later_piece: earlier segments made the inputs, so decisions on them are no guards.
  bool decides_on_given_numbers = false, pins_given_numbers = false, is_later_piece = false;
  FloatExpr::Ref given_number(graph::ValueId value) const;  // input_scalars.h; nullptr: the value is no input scalar
  // Records how arguments and input scalars produce the number in a float64 tensor with a single element.
  void note_number(TraceTensor& tensor, FloatExpr::Ref made_by);
  // Returns the proxy tensor of a real tensor met during the capture. The compiled code keeps the real tensor alive.
  at::Tensor lift(const at::Tensor& real);
  void name_constant(const at::Tensor& real, std::string name) { names_[real.unsafeGetTensorImpl()] = std::move(name); }

  // The value of the tensor's memory now, including writes through other views of its storage.
  graph::ValueId memory_of(TraceTensor& tensor);
  // The value which the tensor reads from its memory: conjugated or negated for a view with these bits.
  graph::ValueId value_of(TraceTensor& tensor) { return read(tensor, memory_of(tensor)); }
  // In-place write: `value` (same sizes and dtype as the tensor) becomes the tensor's contents.
  void write(TraceTensor& tensor, graph::ValueId value);
  // Aborts where write() would. Called before the written value is computed, since a random operator draws only once.
  void require_writable(const TraceTensor& tensor) const;
  at::Tensor make_result(graph::ValueId value);  // with a fresh storage
  // `within` replaces the extents of the parent's view chain.
  at::Tensor make_view(TraceTensor& parent, graph::OpId op, std::vector<graph::Arg> args, graph::ValueId value,
                       sym::ExprId offset, std::optional<std::vector<Extent>> within = std::nullopt);
  // Records that `copy` was made where eager mode may return a view of `source` (view_or_copy.h).
  void note_copy(const TraceTensor& source, const TraceTensor& copy);
  // Whether eager mode returns the caller's tensor `self` itself, for the hinted sizes, where the capture made
  // `result`. If so, a guard restricts the program to these sizes.
  bool is_given_back(const at::Tensor& self, const at::Tensor& result, const ViewOrCopy& choice);
  // Whether a write to `target` overwrites only a part of `read`, which eager mode refuses. The answer is guarded.
  bool overlaps_partly(const TraceTensor& target, const TraceTensor& read);
  // Whether the tensor lies in the caller's memory, possibly as a view of a larger tensor.
  bool is_callers(const TraceTensor& tensor) const {
    return storages_[tensor.storage_id().index].home != OutputSpec::Kind::GraphOutput;
  }
  // Whether a kernel of the program will write the tensor's memory. Its strides are then exact, including the strides
  // of dimensions of size 1, which operators and callers choose freely.
  bool lays_out(const TraceTensor& tensor) const;
  // Whether the caller's storage begins with the base of this tensor; a positive answer is guarded.
  void note_hidden_alias(const TraceTensor& source, const TraceTensor& result);
  bool starts_storage(const TraceTensor& tensor);
  // Guards all strides of this tensor: a computation depends on them, so a caller's tensor must keep them.
  void hold_strides(const TraceTensor& tensor);
  // Storage offset of the caller's tensor.
  int64_t real_offset(StorageId id) const { return storages_[id.index].real_offset; }
  // The base of a view, with its present contents and without the conjugate and negative bits.
  at::Tensor base_of(const TraceTensor& view);
  // The real tensor of a constant.
  const at::Tensor& constant(const graph::Value& value) const { return constants_[value.result]; }
  // Result of a small `empty` of constant size. It has real memory, which shows writes made behind the dispatcher.
  at::Tensor make_watched_empty(graph::ValueId value);

  // Appends a call and returns its results. Types come from the operator's shape rule, else from the generic rule.
  std::vector<graph::ValueId> call(graph::OpId op, std::vector<graph::Arg> args);
  uint64_t absent_results = 0;  // bit mask by position: the results which the last call() does not return

  // As call(), for operators with data-dependent result sizes: these sizes become unbacked symbols.
  std::vector<graph::ValueId> call_data_dependent(graph::OpId op, std::vector<graph::Arg> args);

  // The elements of a tensor: expressions of sizes where possible; else unbacked symbols, if symbolic_numbers is set.
  // nullopt: the elements cannot be symbolic.
  std::optional<std::vector<sym::ExprId>> symbolic_elements(graph::ValueId value);
  // The earlier result of nonzero on this mask, if there is one.
  std::optional<graph::ValueId> nonzero_of(graph::ValueId mask) const;
  bool is_nonzero_of(graph::ValueId found, graph::ValueId mask) const { return nonzero_of(mask) == found; }
  // Assumes the condition from now on; the program checks it at run time.
  void state(sym::ExprId condition, std::string message);
  // The source line at which a data-dependent symbol was made.
  std::string origin(sym::VarId var) const;

  // Reads the number in a single-element value by running the part of the graph before it on the real arguments. The
  // program is then guarded by this number.
  at::Scalar read_number(graph::ValueId value);
  bool reads_data() const { return !data_reads_.empty(); }
  const std::vector<SymbolBinding>& symbols() const { return symbols_; }  // bindings of sizes and other numbers
  // Whether the user's program may catch an exception of the current operator. May be empty: then it cannot.
  std::function<bool()> may_be_caught;
  // The operator which ended the capture received arguments of unfitting dtypes or sizes.
  bool arguments_did_not_fit = false;

  // ---- Subgraphs which run conditionally or repeatedly (control_flow.h). A subgraph is recorded by begin_part(), its
  // operators, and end_part(); abandon_part() undoes it. Subgraphs nest. A flush is impossible while a subgraph is
  // recorded: a request for data throws, and part_failure() gives the reason.
  bool in_part() const { return !recordings_.empty(); }
  void begin_part();
  GraphPart end_part(const std::vector<at::Tensor>& outputs);  // throws CaptureAbort; the subgraph stays open
  void abandon_part();
  [[gnu::cold]] void fail_part(BreakReason why);  // the first reason counts
  BreakReason take_part_failure() { return std::exchange(part_failure_, {}); }
  const BreakReason& part_failure() const { return part_failure_; }
  // Return the results of the operator. Throw CaptureAbort when the subgraphs do not fit together.
  std::vector<at::Tensor> add_cond(const at::Tensor& predicate, GraphPart if_true, GraphPart if_false);
  // The placeholders of the carried tensors in both subgraphs of a loop.
  std::vector<at::Tensor> add_carried(const std::vector<at::Tensor>& initial, std::vector<uint32_t>& positions);
  std::vector<at::Tensor> add_while(const std::vector<at::Tensor>& initial, std::vector<uint32_t> carried,
                                    GraphPart condition, GraphPart body);
  std::string remark;  // appended to the reason of the next graph break
  // ---- Gradients of results (gradients.h)

  // Appends the gradients of the results with respect to the caller's tensors, separately from the program. The results
  // then have no autograd history: compiled code attaches it. Must not hold the GIL. Returns a reason on failure; then
  // nothing has changed.
  BreakReason record_gradients(const std::vector<at::Tensor>& results);
  // Reasons of a failure: t.retain_grad(); an earlier torch.autograd.grad() which freed a part of the autograd graph.
  bool retained_gradients = false, freed_graph = false;
  // Runs the autograd graph. The `python` nodes call Python functions; an action forbidden to them fails the subgraph.
  // Empty: autograd functions of this kind run eagerly.
  std::function<void(const std::vector<torch::autograd::Node*>& python, const std::function<void()>& run)> run_record;

  // ---- The end. An open capture defers operators; after it is closed, operators run eagerly.

  // Closes the capture early: deferred operators run now, and every live trace tensor becomes real in place. An error
  // of a deferred operator is kept for rethrow_deferred(). No-op when closed.
  [[gnu::cold]] void flush(const BreakReason& why);
  // Called first by a flush of an open capture. Returns true when it has ended the capture in order. May be empty.
  std::function<bool(const BreakReason& why)> before_flush;
  // Called when the capture closes in any way: later operators are not captured. May be empty.
  std::function<void()> on_close;
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
  const std::vector<at::Tensor>& inputs() const { return real_inputs_; }  // aliases for input proxies
  void forget_inputs();                                                   // called when all captured operators have run
  void count_writes(int times) const;  // adds `times` * writes to version counters; -1 undoes the writes' counts
  // Settles the results of the operator which ended the capture and ran eagerly. Autograd saw it with symbolic sizes.
  void settle_native_results(const std::vector<at::Tensor>& results) const;

  uint64_t serial() const { return serial_; }  // number of trace tensors made so far
  struct Done {
    size_t writes = 0, storages = 0, draws = 0;
  };
  Done done() const { return {written_.size(), storages_.size(), draws_}; }
  // Whether, since `before`, an older tensor was written, a random number drawn, or another library's operator called.
  bool has_effects_since(const Done& before) const;
  uint64_t enlist(TraceTensor& tensor);  // returns the tensor's serial number
  void strike(TraceTensor& tensor);

  DType default_dtype;
  bool symbolic_numbers = false;           // integers read from tensors are symbols
  bool symbolic_booleans = false;          // the same for booleans
  std::vector<sym::ExprId> asked_numbers;  // data-dependent numbers which the segment must compute
  int recording = 0;                       // depth of running capture kernels; these flush by themselves
  // Sets the graph's current location: the running line of the program, or the line whose operators are differentiated.
  // Called before an operator is recorded.
  void set_location();
  std::function<void(Capture&)> locate;  // the running line; may be empty
  // The symbolic number behind a wrapped number, if any. torch's Python binding keeps the number beside the tensor,
  // whose own contents are then meaningless. May be empty.
  std::function<std::optional<at::Scalar>(const at::Tensor&)> symbolic_number;
  std::vector<graph::ValueId> float_numbers;  // Python floats among the current operator's arguments
  Captured counters;                          // only the counters are used while capturing

 private:
  struct Storage {
    graph::ValueId value;
    uint32_t version = 0, first_version = 0;  // writes; the real tensor's counter (version_counters.cpp)
    OutputSpec::Kind home = OutputSpec::Kind::GraphOutput;
    uint32_t position = 0;
    at::Tensor watched;          // real memory given out for an `empty`
    at::Tensor real;             // the input or constant
    bool ambiguous = false;      // shares memory with another storage in an unmodelled way: must not be written
    bool hidden_alias = false;   // the value of a view which autograd knows as a new tensor
    bool required_grad = false;  // requires_grad at first sight
    const void* gradient_node = nullptr;     // grad_fn at first sight
    std::shared_ptr<const History> history;  // autograd history at first sight
    bool is_root = false;                    // written, and a root of the backward pass
    int64_t real_offset = 0;                 // storage offset of the real base
    graph::ValueId first;                    // the value before the first write
  };
  struct Geometry {
    graph::TensorType type;
    InputLayout layout;
  };

  struct Leaves;  // of the autograd graph
  std::string obstacle_to_gradients(const std::vector<at::Tensor>& roots, Leaves& leaves,
                                    std::vector<torch::autograd::Node*>& python);
  std::vector<at::Tensor> differentiable(const std::vector<at::Tensor>& results, std::string& why);
  bool owns_memory(const at::Tensor& base);
  struct BackwardPart;  // under construction
  void add_gradients(const std::vector<at::Tensor>& roots, Leaves& leaves,
                     const std::vector<torch::autograd::Node*>& python, BackwardPart& part);
  std::shared_ptr<const Backward> finished_backward(const std::vector<at::Tensor>& outputs);
  struct Recording;  // of a subgraph
  std::vector<at::Tensor> all_live();
  void restore(Recording& recording);
  void own_outputs(GraphPart& part);
  graph::ValueId append_to(GraphPart& part, graph::OpId op, std::vector<graph::Arg> args);
  void unify_outputs(GraphPart& a, GraphPart& b);
  void include_writes(GraphPart& a, GraphPart& b);
  std::vector<at::Tensor> add_control_flow(DataDependentCall call, size_t results);
  at::Tensor make_tensor(StorageId storage, ViewChainPtr chain, graph::ValueId value, sym::ExprId offset);
  StorageId add_storage(graph::ValueId value, OutputSpec::Kind home, uint32_t position);
  at::Tensor adopt(const at::Tensor& real, graph::ValueId base_value, OutputSpec::Kind home, uint32_t position);
  Geometry input_geometry(const at::Tensor& real, uint32_t position, const std::string& name,
                          const std::vector<DimMark>& marks);
  graph::TensorType constant_geometry(const at::Tensor& real);
  void settle_watched(Storage& storage);
  uint32_t counted_writes(const Storage& storage) const;
  std::vector<std::pair<uint32_t, uint32_t>> moved_counters() const;
  void add_mutations();
  void set_versions(std::vector<OutputSpec>& specs, const std::vector<at::Tensor>& outputs,
                    const std::vector<bool>&) const;
  // Converts between memory and the value which a tensor reads; the conversion is its own inverse.
  graph::ValueId read(const TraceTensor& tensor, graph::ValueId memory);
  graph::ValueId scatter(const ViewChain& link, graph::ValueId parent, graph::ValueId value);
  graph::ValueId scattered_whole(graph::ValueId value, const graph::TensorType& parent, graph::OpId view,
                                 std::vector<graph::Arg> args);
  graph::ValueId scattered(const TraceTensor& tensor, graph::ValueId value);
  bool lies_in_base(const TraceTensor& tensor) const;
  graph::ValueId parent_value(const Storage& storage, const ViewChain& link);
  const PossibleView* possible_view(uint32_t storage) const;
  bool guard_copy(const PossibleView& view);
  std::optional<int64_t> pinned(sym::ExprId e);
  std::optional<std::vector<int64_t>> pinned(const std::vector<sym::ExprId>& exprs);
  bool is_alive(uint32_t storage);
  void guard_copies_of(uint32_t storage);
  bool shows(const PossibleView& view, const std::unordered_set<uint32_t>& escaping) const;
  std::optional<AsView> as_view(const TraceTensor& trace, const std::unordered_set<uint32_t>& escaping);
  struct Results;  // used while outputs are gathered
  OutputSpec output_of(const at::Tensor& output, Results& results);
  void keep_what_raises(const Backward* backward);
  std::vector<OutputSpec> outputs_of_part(const std::vector<at::Tensor>& tensors, std::vector<graph::ValueId>& outputs);
  Result<ops::Types> shape_of(const ops::OpDef& def, ops::ShapeContext& context, const std::vector<graph::Arg>& args);
  // Aborts where eager mode raises because of dtypes; corrects the results' dtypes to eager mode's.
  void check_dtypes(graph::OpId op, const std::vector<graph::Arg>& args, std::vector<graph::TensorType>& types);
  // Aborts where eager mode raises because of data. Returns whether the program may catch such an error.
  bool check_data(graph::OpId op, const std::vector<graph::Arg>& args);
  ops::ShapeMemo::Entry result_types(graph::OpId op, const std::vector<graph::Arg>& args);
  void replace_masks(graph::OpId op, std::vector<graph::Arg>& args);
  void forget_example(graph::OpId& op, std::vector<graph::Arg>& args) const;
  void assume_sizes(const std::vector<graph::TensorType>& types);
  void check_mask(const graph::TensorType& self, size_t first, const graph::TensorType& mask);
  std::vector<graph::ValueId> append(graph::OpId op, std::vector<graph::Arg> args,
                                     std::vector<graph::TensorType> types);

  bool dynamic_;
  std::unique_ptr<graph::Graph> graph_;
  std::vector<Storage> storages_;
  std::vector<PossibleView> possible_views_;
  std::vector<at::Tensor> constants_;
  std::vector<at::Tensor> real_inputs_;
  std::vector<DataRead> data_reads_;
  std::vector<FloatGuard> float_guards_;
  NumbersOfValues numbers_;
  std::vector<ComputedNumber> computed_;
  std::vector<DataDependentCall> data_calls_;
  std::vector<StatedFact> facts_;
  std::shared_ptr<Backward> backward_;
  ForwardLines forward_lines_;
  std::vector<StorageId> roots_;  // ids, not tensors: the roots must not keep bases alive
  void leave_to_autograd(const std::vector<torch::autograd::Node*>& python);
  bool find_written(std::vector<at::Tensor>& written);
  std::string obstacle_to_histories(const std::vector<at::Tensor>& results) const;
  void settle_histories(const std::vector<at::Tensor>& results);
  void settle_written() const;
  bool is_view_of_written(const at::Tensor& result) const;
  struct OfWritten {
    bool detached, unrecorded;
  };
  std::unordered_map<const c10::TensorImpl*, OfWritten> of_written_;  // results which are views of written storages
  void note_plain(const std::vector<at::Tensor>& wanted, const std::vector<at::Tensor>& results);
  std::vector<at::Tensor> own_leaves_;                // results which require gradients and are leaves
  std::unordered_set<const c10::TensorImpl*> plain_;  // results in a root's memory which require no gradients
  std::vector<std::shared_ptr<Recording>> recordings_;
  BreakReason part_failure_;
  std::unordered_map<sym::VarId, std::string> origins_;
  std::unique_ptr<RaisedByData> raised_by_data_;
  bool any_unbacked_ = false;
  uint32_t float_arguments_ = 0;
  std::vector<SymbolBinding> symbols_;
  std::vector<InputLayout> input_layouts_;
  std::unordered_map<c10::TensorImpl*, at::Tensor> lifted_;       // real tensor -> proxy tensor
  std::unordered_map<const void*, StorageId> storage_of_memory_;  // real StorageImpl -> storage
  std::unordered_map<c10::TensorImpl*, std::string> names_;
  ops::ShapeMemo shapes_;
  std::vector<Guest> guests_, wrappers_;
  bool use_guests_ = false, closed_ = false;
  uint64_t serial_ = 0;
  std::vector<uint32_t> written_;  // storages, in order of the writes
  size_t draws_ = 0;               // also counts calls of foreign libraries' operators
  BreakReason why_closed_;
  uint64_t first_node_;  // the first autograd node made during this capture
  std::exception_ptr deferred_error_;
  bool failed_ = false;
  std::mutex live_mutex_;           // tensors may die on any thread
  std::vector<TraceTensor*> live_;  // includes proxy tensors
  std::shared_ptr<LayoutNotes> notes_ = std::make_shared<LayoutNotes>();
};

}  // namespace cresset::bridge

// One capture: while it is entered on a thread, every operator that reaches a backend is appended to a graph.
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

#include "bridge/captured.h"
#include "bridge/forward_lines.h"
#include "bridge/guest.h"
#include "bridge/possible_views.h"
#include "bridge/trace_tensor.h"
#include "graph/graph.h"
#include "ops/op_def.h"
#include "ops/shape_memo.h"
#include "runtime/program.h"

namespace torch::autograd {
struct Node;
}

namespace cresset::bridge {
class History;  // rebase.h
class RaisedByData;

// Capture cannot go on: what was asked needs data, or has no place in a graph. The kernel that meets it flushes, and
// runs its operator natively.
class CaptureAbort : public c10::Error {
 public:
  using c10::Error::Error;
};
[[noreturn]] void abort_capture(std::string why);

class Capture : public std::enable_shared_from_this<Capture> {
 public:
  explicit Capture(bool dynamic);
  ~Capture();

  static Capture* current();  // of this thread; nullptr when none is entered
  static Capture* exchange_current(Capture* other);

  // Enters on construction, leaves on destruction; nests. Dispatch state is restored exactly.
  class Scope {
   public:
    explicit Scope(Capture& capture);
    ~Scope();
    Scope(const Scope&) = delete;
    // The capture goes on in another one, in the state that torch's modes have now.
    void switch_to(Capture& next);

   private:
    Capture* previous_;
    c10::impl::LocalDispatchKeySet saved_;
    bool autocast_cache_;
  };
  // Of this thread, until the scope switches to another capture: nothing is captured any more. Not in the middle of an
  // operator: torch's own guards around it put back what they found.
  static void leave_dispatch_state();

  // Inside a scope: operators run for real until it ends.
  class StepAside {
   public:
    StepAside();
    ~StepAside();

   private:
    c10::impl::LocalDispatchKeySet saved_;
  };

  graph::Graph& graph() { return *graph_; }
  bool failed() const { return failed_; }  // one of its operators raised: what those behind it give does not exist
  void note_failure() { failed_ = true; }
  bool says_history() const;                            // of a caller's tensor: is_asked_for_history()
  bool has_graph() const { return graph_ != nullptr; }  // until the capture is finished
  sym::ShapeEnv& env() { return graph_->env(); }
  const std::shared_ptr<sym::ShapeEnv>& env_ptr() const { return graph_->env_ptr(); }

  // The stand-in of a caller's tensor. marks: one a dimension, or empty.
  at::Tensor add_input(const at::Tensor& real, std::string name, const std::vector<DimMark>& marks);
  // The caller's tensor takes part itself until the capture is closed (guest.h).
  void add_guest(const at::Tensor& real, std::string name, const std::vector<DimMark>& marks);
  // A wrapper has the sizes of `stand_in`, until the capture is closed (guest.h).
  void add_wrapper(const at::Tensor& wrapper, const at::Tensor& stand_in);
  c10::SymInt add_int_argument(int64_t value, std::string name);
  // A caller's float as a symbol: `real`, a tensor of that one number, is an input.
  c10::SymFloat add_float_argument(const at::Tensor& real, std::string name);
  // The float arguments (a bit each) that a decision looked at: the program serves no other values of them.
  uint64_t pinned_floats = 0;
  // Whether sizes in floats that are compared stay free: then no condition on the sizes alone says for which ones the
  // program is right.
  bool sizes_stay_free = true;
  // How two floats compare, in this call and in those that the program is to serve. nullopt: too many such guards.
  std::optional<bool> decide(const FloatExpr::Ref& left, FloatRelation relation, const FloatExpr::Ref& right,
                             OfData of_data);
  // The symbol of a whole number that floats and sizes give. nullopt: it is none, or there are too many.
  std::optional<sym::ExprId> computed_number(const FloatExpr::Ref& made);
  // Of numbers in tensors that were there before the piece: whether decisions on floats may be guards; whether integers
  // are symbols, and one truth value, one float, may be wanted by a guard. is_later_piece: its inputs are of the call.
  bool decides_on_given_numbers = false, pins_given_numbers = false, is_later_piece = false;
  FloatExpr::Ref given_number(graph::ValueId value) const;  // given_number.h; nullptr: none
  // What arguments and given scalars make of the number in a tensor of one f64.
  void note_number(TraceTensor& tensor, FloatExpr::Ref made_by);
  // The stand-in of a real tensor met on the way; the tensor is held by the compiled code.
  at::Tensor lift(const at::Tensor& real);
  void name_constant(const at::Tensor& real, std::string name) { names_[real.unsafeGetTensorImpl()] = std::move(name); }

  // What lies in memory for a tensor now, following writes through other views of its storage.
  graph::ValueId memory_of(TraceTensor& tensor);
  // The value that it has: of a view with the bits for it, conjugated or negated.
  graph::ValueId value_of(TraceTensor& tensor) { return read(tensor, memory_of(tensor)); }
  // In-place write: `value` (same sizes and dtype as the tensor) becomes its contents.
  void write(TraceTensor& tensor, graph::ValueId value);
  // Aborts where write() would. Asked before what is written is computed: a random operator draws but once.
  void require_writable(const TraceTensor& tensor) const;
  at::Tensor make_result(graph::ValueId value);  // over a fresh storage
  // within: those of the view's chain, where they are not its parent's.
  at::Tensor make_view(TraceTensor& parent, graph::OpId op, std::vector<graph::Arg> args, graph::ValueId value,
                       sym::ExprId offset, std::optional<std::vector<Extent>> within = std::nullopt);
  // `copy` was made where eager may give a view of `source` (possible_views.h).
  void note_copy(const TraceTensor& source, const TraceTensor& copy);
  // Whether eager gives the caller's tensor `self` back where `result` was made: then only such sizes are served.
  bool is_given_back(const at::Tensor& self, const at::Tensor& result, const ViewOrCopy& choice);
  // Whether writing `target` would overwrite part of `read` only, which eager refuses. Guards what it finds.
  bool overlaps_partly(const TraceTensor& target, const TraceTensor& read);
  // Whether the tensor lies in memory of the caller's, of which it may be a part.
  bool is_callers(const TraceTensor& tensor) const {
    return storages_[tensor.storage_id().index].home != OutputSpec::Kind::GraphOutput;
  }
  // Whether the tensor will lie in memory that a kernel of the program writes: its strides are then what they are here,
  // those of dimensions of size 1, too, which operators and callers choose as they like.
  bool lays_out(const TraceTensor& tensor) const;
  // Whether the caller's memory begins with the base of this tensor; when so, later calls are held to it.
  bool starts_storage(const TraceTensor& tensor);
  // Something depends on all strides of this tensor: those of a caller's must be as its type says, in later calls, too.
  void hold_strides(const TraceTensor& tensor);
  int64_t real_offset(StorageId id) const { return storages_[id.index].real_offset; }  // of the caller's tensor
  // The whole storage that a view lies in, as it is now: without the bits by which views are read.
  at::Tensor base_of(const TraceTensor& view);
  // The real tensor behind a constant.
  const at::Tensor& constant(const graph::Value& value) const { return constants_[value.result]; }
  // An `empty` that is small and concrete: has real memory, so that what is written behind the dispatcher is seen.
  at::Tensor make_watched_empty(graph::ValueId value);

  // Appends a call; returns its result values. Shape rule, else the generic rule.
  std::vector<graph::ValueId> call(graph::OpId op, std::vector<graph::Arg> args);
  uint64_t absent_results = 0;  // of the last call(), by position: those that it does not give

  // As call(), for operators whose result sizes depend on data: the results' sizes are unbacked symbols.
  std::vector<graph::ValueId> call_data_dependent(graph::OpId op, std::vector<graph::Arg> args);

  // What a tensor's elements are: expressions of sizes where those alone give them; else, with symbolic_numbers,
  // unbacked symbols. nullopt: they cannot be.
  std::optional<std::vector<sym::ExprId>> symbolic_elements(graph::ValueId value);
  // What nonzero gives of the mask, if that was asked for.
  std::optional<graph::ValueId> nonzero_of(graph::ValueId mask) const;
  bool is_nonzero_of(graph::ValueId found, graph::ValueId mask) const { return nonzero_of(mask) == found; }
  // Assumed from now on, and checked when the program runs.
  void state(sym::ExprId condition, std::string message);
  // Of a symbol that data gives: the line it was made at.
  std::string origin(sym::VarId var) const;

  // The number that a one-element value holds for the real arguments: runs the part of the graph before it. The
  // captured program is then guarded by that number.
  at::Scalar read_number(graph::ValueId value);
  bool reads_data() const { return !data_reads_.empty(); }
  const std::vector<SymbolBinding>& symbols() const { return symbols_; }  // where sizes and other numbers come from
  // Whether the program may catch what an operator raises where it stands. May be empty: it may not.
  std::function<bool()> may_be_caught;
  // The operator that ended the capture was given arguments whose types and sizes do not fit.
  bool arguments_did_not_fit = false;

  // ---- Parts of the program that may run or not, or several times (control_flow.h). Each is recorded in its turn:
  // begin, the operators, end; or abandon, and it is as if it had not begun. Parts nest. While one is recorded nothing
  // can be flushed: what asks for data gets an exception, and part_failure() says why.
  bool in_part() const { return !recordings_.empty(); }
  void begin_part();
  GraphPart end_part(const std::vector<at::Tensor>& outputs);  // throws CaptureAbort; the part goes on
  void abandon_part();
  [[gnu::cold]] void fail_part(std::string why);  // the first reason counts
  std::string take_part_failure() { return std::exchange(part_failure_, {}); }
  const std::string& part_failure() const { return part_failure_; }
  // Their results. Throw CaptureAbort when the parts do not fit together.
  std::vector<at::Tensor> add_cond(const at::Tensor& predicate, GraphPart if_true, GraphPart if_false);
  // What stands for the carried tensors in both parts of a loop.
  std::vector<at::Tensor> add_carried(const std::vector<at::Tensor>& initial, std::vector<uint32_t>& positions);
  std::vector<at::Tensor> add_while(const std::vector<at::Tensor>& initial, std::vector<uint32_t> carried,
                                    GraphPart condition, GraphPart body);
  std::string remark;  // said with the reason of the next break
  // ---- Gradients of results (gradients.h)

  // Appends what computes them for what the results depend on of the caller's, apart from the program. The results
  // are without a history then: compiled code gives them theirs. Not under the GIL. Says why it cannot be; then nothing
  // has changed.
  std::string record_gradients(const std::vector<at::Tensor>& results);
  bool retained_gradients = false;  // why it cannot be: t.retain_grad()
  // Runs autograd's record, of which these nodes call functions of Python's: what those must not do now makes the part
  // fail. Empty: such nodes are left to autograd.
  std::function<void(const std::vector<torch::autograd::Node*>& python, const std::function<void()>& run)> run_record;

  // ---- The end. An open capture defers; a closed one does not: operators run natively from then on.
  // Closes the capture early: what was deferred happens now, and every trace tensor alive becomes real in place. An
  // error that a deferred operator raises is kept for rethrow_deferred(). No-op when closed.
  [[gnu::cold]] void flush(const std::string& why);
  // Called first, when it is not closed yet: true when that has ended the capture in an orderly way. May be empty.
  std::function<bool(const std::string& why)> before_flush;
  // Called when it closes, in whatever way: what follows is no longer capturing. May be empty.
  std::function<void()> on_close;
  bool closed() const { return closed_; }
  std::string located(const std::string& why) const;             // with the user's line, while open
  const std::string& why_closed() const { return why_closed_; }  // of a flush
  void rethrow_deferred();                                       // once

  // The orderly way: close(), then finish(outputs), compile, run, and settle() with what the program gave.
  // close() gives guests back, and returns the trace tensors that somebody outside holds, which held() counts.
  std::vector<at::Tensor> held();
  std::vector<at::Tensor> close();
  // runs_once: for interpret() alone, which raises where the program does.
  Captured finish(const std::vector<at::Tensor>& outputs, bool runs_once = false);
  // Runs a finished capture operator by operator on the tensors it was captured with: for programs that run once.
  std::vector<at::Tensor> interpret(Captured& captured);
  static void settle(const std::vector<at::Tensor>& trace, const std::vector<at::Tensor>& real);
  const std::vector<at::Tensor>& inputs() const { return real_inputs_; }  // of guests: aliases
  void forget_inputs();                                                   // when all that was captured has run
  void count_writes(int times) const;  // -1: the versions of what was written are those of before
  // The operator at which the capture ended, done for real, gave these: autograd noted it with symbolic sizes.
  void settle_native_results(const std::vector<at::Tensor>& results) const;

  uint64_t serial() const { return serial_; }  // trace tensors made so far
  struct Done {
    size_t writes = 0, storages = 0, draws = 0;
  };
  Done done() const { return {written_.size(), storages_.size(), draws_}; }
  // Whether since then a tensor that was there then was written, a random number drawn, or an operator called that is
  // not torch's.
  bool has_effects_since(const Done& before) const;
  uint64_t enlist(TraceTensor& tensor);  // its serial number
  void strike(TraceTensor& tensor);

  DType default_dtype;
  bool symbolic_numbers = false;           // integers read from tensors are symbols
  bool symbolic_booleans = false;          // and so are booleans
  std::vector<sym::ExprId> asked_numbers;  // of data, which the end of the piece must tell
  int recording = 0;                       // capture kernels at work: a flush is theirs to make
  // Sets the graph's current location: the line of the program that runs, or the line whose operators' gradients are
  // computed. Called before an operator is recorded.
  void set_location();
  std::function<void(Capture&)> locate;  // the line that runs; may be empty
  // The symbolic number that a wrapped number stands for, if it does: torch's Python binding keeps it beside the
  // tensor, whose own contents mean nothing then. May be empty.
  std::function<std::optional<at::Scalar>(const at::Tensor&)> symbolic_number;
  std::vector<graph::ValueId> float_numbers;  // among the arguments of the operator at hand: Python's floats
  Captured counters;                          // only the counters are used while capturing

 private:
  struct Storage {
    graph::ValueId value;
    uint32_t version = 0, first_version = 0;  // writes; the real tensor's counter (version_counters.cpp)
    OutputSpec::Kind home = OutputSpec::Kind::GraphOutput;
    uint32_t position = 0;
    at::Tensor watched;          // real memory given out for an `empty`
    at::Tensor real;             // the input or constant
    bool ambiguous = false;      // shares memory with another input in a way that is not modelled: must not be written
    bool required_grad = false;  // when it was met,
    const void* gradient_node = nullptr;     // and the node that it was a result of
    std::shared_ptr<const History> history;  // and where its gradients went
    bool is_root = false;                    // it is written, and a root of the backward pass
    int64_t real_offset = 0;                 // storage offset of the real base
    graph::ValueId first;                    // its value before it was written
  };
  struct Geometry {
    graph::TensorType type;
    InputLayout layout;
  };

  struct Leaves;  // of autograd's record
  std::string obstacle_to_gradients(const std::vector<at::Tensor>& roots, Leaves& leaves,
                                    std::vector<torch::autograd::Node*>& python);
  std::vector<at::Tensor> differentiable(const std::vector<at::Tensor>& results, std::string& why);
  bool owns_memory(const at::Tensor& base);
  struct BackwardPart;  // in the making
  void add_gradients(const std::vector<at::Tensor>& roots, Leaves& leaves,
                     const std::vector<torch::autograd::Node*>& python, BackwardPart& part);
  std::shared_ptr<const Backward> finished_backward(const std::vector<at::Tensor>& outputs);
  struct Recording;  // of a part
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
  // Between memory and what a tensor reads of it: both ways the same.
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
  struct Results;  // while outputs are gathered
  OutputSpec output_of(const at::Tensor& output, Results& results);
  void keep_what_raises(const Backward* backward);
  std::vector<OutputSpec> outputs_of_part(const std::vector<at::Tensor>& tensors, std::vector<graph::ValueId>& outputs);
  Result<ops::Types> shape_of(const ops::OpDef& def, ops::ShapeContext& context, const std::vector<graph::Arg>& args);
  // Aborts where eager raises by them; the results' dtypes are as eager has them.
  void check_dtypes(graph::OpId op, const std::vector<graph::Arg>& args, std::vector<graph::TensorType>& types);
  // Likewise by what they hold. Whether the program may catch what the operator raises by that.
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
  std::vector<StorageId> roots_;  // no tensors: a base that only results are views of lives no longer than they do
  void leave_to_autograd(const std::vector<torch::autograd::Node*>& python);
  bool find_written(std::vector<at::Tensor>& written);
  std::string obstacle_to_histories(const std::vector<at::Tensor>& results) const;
  void settle_histories(const std::vector<at::Tensor>& results);
  void settle_written() const;
  bool is_view_of_written(const at::Tensor& result) const;
  struct OfWritten {
    bool detached, unrecorded;
  };
  std::unordered_map<const c10::TensorImpl*, OfWritten> of_written_;  // results that are views of such storages
  void note_plain(const std::vector<at::Tensor>& wanted, const std::vector<at::Tensor>& results);
  std::vector<at::Tensor> own_leaves_;                // results of which gradients are wanted
  std::unordered_set<const c10::TensorImpl*> plain_;  // results that lie in a root's memory, and want no gradients
  std::vector<std::shared_ptr<Recording>> recordings_;
  std::string part_failure_;
  std::unordered_map<sym::VarId, std::string> origins_;
  std::unique_ptr<RaisedByData> raised_by_data_;
  bool any_unbacked_ = false;
  uint32_t float_arguments_ = 0;
  std::vector<SymbolBinding> symbols_;
  std::vector<InputLayout> input_layouts_;
  std::unordered_map<c10::TensorImpl*, at::Tensor> lifted_;       // real -> stand-in
  std::unordered_map<const void*, StorageId> storage_of_memory_;  // real StorageImpl -> storage
  std::unordered_map<c10::TensorImpl*, std::string> names_;
  ops::ShapeMemo shapes_;
  std::vector<Guest> guests_, wrappers_;
  bool use_guests_ = false, closed_ = false;
  uint64_t serial_ = 0;
  std::vector<uint32_t> written_;  // storages, as they were
  size_t draws_ = 0;               // and calls of other libraries' operators
  std::string why_closed_;
  uint64_t first_node_;  // of those that autograd has made since
  std::exception_ptr deferred_error_;
  bool failed_ = false;
  std::mutex live_mutex_;           // tensors may die on any thread
  std::vector<TraceTensor*> live_;  // stand-ins included
  std::shared_ptr<LayoutNotes> notes_ = std::make_shared<LayoutNotes>();
};

}  // namespace cresset::bridge

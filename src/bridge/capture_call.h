// One call of one operator under capture: reads its arguments from the stack, appends what it means to the graph, and
// leaves trace tensors for its results.
#pragma once

#include <ATen/core/stack.h>

#include <optional>
#include <string>
#include <vector>

#include "bridge/arguments.h"
#include "bridge/capture.h"
#include "bridge/op_entry.h"
#include "graph/graph.h"

namespace cresset::bridge {

class CaptureCall {
 public:
  CaptureCall(const OpEntry& entry, Capture& capture, torch::jit::Stack& stack)
      : entry_(entry), capture_(capture), stack_(stack), count_(entry.arg_types.size()), outer_op_(current_op_) {
    current_op_ = &entry_;
    ++capture_.recording;
  }
  ~CaptureCall() {
    current_op_ = outer_op_;
    --capture_.recording;
  }
  void run();
  void perform();
  // The operator at work on this thread: the innermost of those that call others.
  static const OpEntry* current_op() { return current_op_; }

 private:
  const c10::IValue& argument(size_t i) const { return stack_[stack_.size() - count_ + i]; }

  // ---- The arguments as the graph has them (capture_call_arguments.cpp)

  std::vector<graph::Arg> arguments(size_t count);
  AutogradNotes* notes() const;
  void note_histories(AutogradNotes& notes, const std::vector<graph::Arg>& args) const;
  // Of a view: what lies in memory for its parent, then the other arguments.
  std::vector<graph::Arg> arguments_of_view(TraceTensor& parent);
  // A number on its way as a tensor, where it is the only tensor that the operator is given: a constant, or filled with
  // what is known of it (the tensor on its way holds nothing then).
  void number_as_tensor(std::vector<graph::Arg>& args);
  // torch.add(1.5, 2): numbers alone give the default dtype, where a tensor in the first one's place would give its
  // own.
  bool is_float_among_numbers(const std::vector<graph::Arg>& args) const;
  // A number takes the dtype of the tensors beside it when these are floats, else the default one.
  void give_dtype(std::vector<graph::Arg>& args);
  // A functional counterpart may take a trailing generator that the in-place form has not, or the reverse.
  void append_defaults(std::vector<graph::Arg>& args);

  // ---- Results, and operators that write nothing (capture_call.cpp)

  void finish(std::vector<c10::IValue> results);
  void finish_with(at::Tensor result);  // as most do
  bool gives_one_tensor() const { return entry_.return_types.size() == 1 && entry_.return_types[0] == ArgType::Tensor; }
  // Wraps graph values by the schema's returns: a Tensor[] takes what the others leave. absent: by position.
  std::vector<c10::IValue> wrap(const std::vector<at::Tensor>& tensors, uint64_t absent = 0) const;
  bool is_watchable_empty(const std::vector<graph::ValueId>& results) const;
  void require_dense_gradients();
  void require_no_autocast();
  void require_own_derivative();
  // A float without a number yet or a complex number, where the schema has one: another form takes a tensor there.
  bool scalar_is_tensor();
  // An integer of sizes, and with symbolic_numbers any, stays symbolic.
  bool symbolic_item();
  // item(), bool(tensor), int(tensor): the value now, and a guard that it is the same at later calls.
  bool read_number();
  // Its schema does not say so, but in training native_batch_norm writes the running statistics.
  bool batch_norm_in_training();
  // Its schema does not say so, but what it gives shares the memory of its argument: who writes the one means both.
  // As the second step of a reshape its argument is a copy that nobody else has (possible_views.h).
  bool is_hidden_view() const;
  void functional();
  void note_copy(const at::Tensor& result);
  at::Tensor stand_in(size_t i);

  // ---- Views (capture_call_views.cpp)

  static graph::OpId as_strided() {
    static const graph::OpId op = graph::op_id("aten::as_strided");
    return op;
  }
  // Offset of a one-result view, from its operator. Views whose offset is the parent's need nothing.
  sym::ExprId view_offset(const TraceTensor& parent, graph::OpId op, const std::vector<graph::Arg>& args);
  // Counted in elements of the view, which may be of another size than the parent's.
  sym::ExprId rescaled(sym::ExprId offset, DType from, DType to);
  // _conj and _neg_view leave the memory as it is, and change how it is read.
  graph::OpId view_op() const;
  bool changes_bits() const;
  void change_bits(TraceTensor& view) const;
  size_t dim(const TraceTensor& parent, const graph::Arg& arg) const;
  // As above for arguments that no shape rule has seen: the operator itself raises on what it rejects.
  size_t checked_dim(const TraceTensor& parent, const graph::Arg& arg);
  bool negative(sym::ExprId e);
  sym::ExprId wrapped_index(const TraceTensor& parent, size_t d, const graph::Arg& arg);
  sym::ExprId slice_offset(const TraceTensor& parent, const std::vector<graph::Arg>& args);
  sym::ExprId diagonal_offset(const TraceTensor& parent, const std::vector<graph::Arg>& args);
  at::Tensor one_view(TraceTensor& parent, graph::OpId op, std::vector<graph::Arg> args,
                      std::optional<std::vector<Extent>> within = std::nullopt);
  // What a view by as_strided of `view` lies within (ViewChain).
  static std::optional<std::vector<Extent>> extents(const TraceTensor& view);
  // as_strided speaks of the storage, in elements of its argument, whatever view of it that is: the storage's base as
  // elements of that dtype, which begin where it begins.
  at::Tensor memory_as(const at::Tensor& base, DType dtype);
  bool is_dense(const TraceTensor& tensor) const;
  // Of a caller's tensor the program sees its own elements alone, and no more of the storage than the region that they
  // fill; where that lies in the storage differs from call to call. Eager refuses to go beyond any other memory.
  void check_inside(const TraceTensor& memory, const std::vector<graph::Arg>& args);
  at::Tensor strided(const at::Tensor& of, std::vector<graph::Arg> args);
  // The copying forms of as_strided see the memory around their argument, too: they are captured of what lies all in
  // the program, else the capture ends. True when the call is done.
  bool strided_copy();
  // Whether as_strided with these arguments gives its base as it is.
  bool is_all_of(const TraceTensor& base, const std::vector<graph::Arg>& args);
  void view();
  bool is_known_view() const;
  void in_place_view();
  // split, unbind and their kin: each result is a slice or a selection of the parent.
  void views(TraceTensor& parent, const std::vector<graph::Arg>& args);
  int64_t pin(sym::ExprId e);
  // Sizes of the pieces of a split. How many there are is pinned; how long the last one is stays symbolic.
  std::vector<sym::ExprId> pieces(const TraceTensor& parent, const std::vector<graph::Arg>& args, size_t d);
  void check_split(const TraceTensor& parent, const std::vector<graph::Arg>& args,
                   const std::vector<sym::ExprId>& sizes, size_t d);
  // Sizes that data gives. The operator itself stays in the graph for its errors, should the graph be run as it is.
  void assume_split(const TraceTensor& parent, const std::vector<graph::Arg>& args,
                    const std::vector<sym::ExprId>& sizes, size_t d);
  // Lets the operator itself raise on arguments that it rejects.
  bool generic_check();
  at::Tensor slice(TraceTensor& parent, const graph::Arg& self, size_t d, sym::ExprId start, sym::ExprId end);
  at::Tensor select(TraceTensor& parent, const graph::Arg& self, size_t d, sym::ExprId index);
  at::Tensor derived(TraceTensor& parent, const char* op, std::vector<graph::Arg> args, graph::TensorType type,
                     size_t d, sym::ExprId start);

  // ---- Writes (capture_call_writes.cpp)

  // Sizes must agree and the result's category must not exceed the target's; else eager raises.
  graph::ValueId fit(graph::ValueId result, const TraceTensor& target);
  bool decide_equal(sym::ExprId a, sym::ExprId b);
  std::string shape_text(const graph::TensorType& type);
  // Eager refuses to write elements that share their memory, which it tells by a stride of 0.
  void require_writable(const TraceTensor& target);
  // Eager refuses to write memory that it reads elsewhere in the same operator.
  void check_overlap(const TraceTensor& target);
  void in_place();
  void out();
  void write_out(size_t i, graph::ValueId result);

  static constexpr int64_t kWatchedBytes = 1 << 20;

  static thread_local constinit const OpEntry* current_op_;

  const OpEntry& entry_;
  Capture& capture_;
  torch::jit::Stack& stack_;
  size_t count_;
  const OpEntry* outer_op_;
};

}  // namespace cresset::bridge

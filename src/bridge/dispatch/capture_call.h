// One call of an operator under capture: reads the arguments from the stack, appends graph nodes, and pushes trace
// tensors for the results.
#pragma once

#include <ATen/core/stack.h>

#include <optional>
#include <string>
#include <vector>

#include "bridge/aten/op_schema.h"
#include "bridge/capture/arguments.h"
#include "bridge/capture/capture.h"
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
  // The operator which runs on this thread; the innermost of nested operators.
  static const OpEntry* current_op() { return current_op_; }

 private:
  const c10::IValue& argument(size_t i) const { return stack_[stack_.size() - count_ + i]; }

  // ---- Arguments in the form of the graph (capture_call_arguments.cpp)

  std::vector<graph::Arg> arguments(size_t count);
  AutogradNotes* notes() const;
  // of_view: the first argument is the memory of a view operator's parent.
  void note_histories(AutogradNotes& notes, const std::vector<graph::Arg>& args, bool of_view = false) const;
  // Arguments of a view operator: the memory of the parent, then the remaining arguments.
  std::vector<graph::Arg> arguments_of_view(TraceTensor& parent);
  // Replaces a wrapped number which is the operator's only tensor argument by a constant, or by a tensor filled with
  // the symbolic number. The wrapped tensor itself then holds nothing.
  void number_as_tensor(std::vector<graph::Arg>& args);
  // torch.add(1.5, 2): numbers alone produce the default dtype, whereas a tensor in the first place would produce its
  // own dtype.
  bool is_float_among_numbers(const std::vector<graph::Arg>& args) const;
  // A number takes the dtype of floating-point tensors beside it, else the default dtype.
  void give_dtype(std::vector<graph::Arg>& args);
  // The functional and the in-place form of an operator may differ by a trailing generator argument.
  void append_defaults(std::vector<graph::Arg>& args);

  // ---- Results, and operators without writes (capture_call.cpp)

  void finish(std::vector<c10::IValue> results);
  void finish_with(at::Tensor result);  // the usual case of one result
  bool gives_one_tensor() const { return entry_.return_types.size() == 1 && entry_.return_types[0] == ArgType::Tensor; }
  // Wraps graph values by the schema's returns: a Tensor[] takes all tensors left over. `absent` is a bit mask by
  // position.
  std::vector<c10::IValue> wrap(const std::vector<at::Tensor>& tensors, uint64_t absent = 0) const;
  bool is_watchable_empty(const std::vector<graph::ValueId>& results) const;
  void require_dense_gradients();
  void require_no_autocast();
  void require_derivative_formula();
  // Handles a complex number or a symbolic float in the place of a number: a different form of the operator takes a
  // tensor.
  bool scalar_is_tensor();
  // Keeps an integer symbolic if sizes determine it, or any integer with symbolic_numbers.
  bool symbolic_item();
  // item(), bool(tensor), int(tensor): reads the value now and guards it for later calls.
  bool read_number();
  // native_batch_norm writes the running statistics in training, although its schema does not say so.
  bool batch_norm_in_training();
  // Whether the operator returns a view although its schema does not say so: a write to the result also writes the
  // argument. In the second step of a reshape the argument is a private copy (view_or_copy.h).
  bool is_hidden_view() const;
  void hidden_view_of_callers(const TraceTensor& source);
  void functional();
  void note_copy(const at::Tensor& result);
  at::Tensor proxy(size_t i);

  // ---- Views (capture_call_views.cpp)

  static graph::OpId as_strided() {
    static const graph::OpId op = graph::op_id("aten::as_strided");
    return op;
  }
  // _conj and _neg_view change only how the memory is read.
  graph::OpId view_op() const;
  bool changes_bits() const;
  void change_bits(TraceTensor& view) const;
  // As ViewOffsets::dim(), for arguments without a shape rule: the operator itself raises on an invalid dimension.
  size_t checked_dim(const TraceTensor& parent, const graph::Arg& arg);
  at::Tensor one_view(TraceTensor& parent, graph::OpId op, std::vector<graph::Arg> args,
                      std::optional<std::vector<Extent>> within = std::nullopt);
  // as_strided addresses the storage in elements of its argument. The result is the storage's base as elements of
  // `dtype`, with the same start.
  at::Tensor memory_as(const at::Tensor& base, DType dtype);
  // Aborts where as_strided leaves the known memory. The program knows only the region of a caller's tensor, whose
  // place in the storage differs between calls. Eager mode itself refuses to leave any other memory.
  void check_inside(const TraceTensor& memory, const std::vector<graph::Arg>& args);
  at::Tensor strided(const at::Tensor& of, std::vector<graph::Arg> args);
  // The copying forms of as_strided also read memory around their argument. They are captured if all of this memory
  // belongs to the program; else the capture ends. Returns true when the call is done.
  bool strided_copy();
  // Whether as_strided with these arguments returns its base unchanged.
  bool is_all_of(const TraceTensor& base, const std::vector<graph::Arg>& args);
  void view();
  bool is_known_view() const;
  void in_place_view();
  // split, unbind and similar operators: each result is a slice or a selection of the parent.
  void views(TraceTensor& parent, const std::vector<graph::Arg>& args);
  // Sizes of the chunks of a split. The number of chunks is specialized; the size of the last chunk stays symbolic.
  std::vector<sym::ExprId> pieces(const TraceTensor& parent, const std::vector<graph::Arg>& args, size_t d);
  void check_split(const TraceTensor& parent, const std::vector<graph::Arg>& args,
                   const std::vector<sym::ExprId>& sizes, size_t d);
  // Assumes data-dependent sizes of a split. The operator itself stays in the graph to raise its errors, should the
  // graph be interpreted.
  void assume_split(const TraceTensor& parent, const std::vector<graph::Arg>& args,
                    const std::vector<sym::ExprId>& sizes, size_t d);
  // Lets the operator itself raise on arguments which it rejects.
  bool generic_check();
  at::Tensor slice(TraceTensor& parent, const graph::Arg& self, size_t d, sym::ExprId start, sym::ExprId end);
  at::Tensor select(TraceTensor& parent, const graph::Arg& self, size_t d, sym::ExprId index);
  at::Tensor derived(TraceTensor& parent, const char* op, std::vector<graph::Arg> args, graph::TensorType type,
                     size_t d, sym::ExprId start);

  // ---- Writes (capture_call_writes.cpp)

  // Checks sizes and dtype category of a result against the target; eager mode raises on a mismatch.
  graph::ValueId fit(graph::ValueId result, const TraceTensor& target);
  bool decide_equal(sym::ExprId a, sym::ExprId b);
  // Eager mode refuses to write elements which share memory; it recognizes them by a stride of 0.
  void require_writable(const TraceTensor& target);
  // Eager mode refuses to write memory which the same operator reads elsewhere.
  void check_overlap(size_t written, const TraceTensor& target);  // the position of the written argument
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

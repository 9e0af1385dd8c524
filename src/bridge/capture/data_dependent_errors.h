// Data-dependent errors: operators which raise because of tensor contents, such as an index out of bounds, a singular
// matrix or an integer division by zero. Shape rules cannot know these errors. During capture the real tensors are
// examined when such an operator is met. The graph segment then ends before the operator, which raises at its place in
// the program, inside the surrounding `try`. A later call whose data raises is repeated by eager mode.
#pragma once

#include <vector>

#include "bridge/capture/concrete_eval.h"
#include "ops/op_traits.h"

namespace cresset::bridge {

// Whether the arguments tell what makes the operator raise because of data (OpTraits::raises).
bool has_known_cause(graph::OpId op);
// Whether the operator may raise for these contents. Also true for an operator without cresset's own rules.
bool may_raise(const graph::Graph& graph, graph::OpId op, const std::vector<graph::Arg>& args);

// Whether integers in the operator's tensors may decide its sizes: lengths of sequences, labels.
bool may_size_by_data(const graph::Graph& graph, graph::OpId op, const std::vector<graph::Arg>& args);

// Integers of a tensor and the size which they have to stay below. Negative ones count from the end, or raise.
struct IndexBound {
  graph::ValueId indices;
  sym::ExprId size;
  bool from_the_end;
};
// The bounds, where the operator raises by indices alone; empty otherwise.
std::vector<IndexBound> index_bounds(const graph::Graph& graph, graph::OpId op, const std::vector<graph::Arg>& args);

// Examines the data of the captured call.
class DataDependentErrors {
 public:
  DataDependentErrors(const graph::Graph& graph, const std::vector<at::Tensor>& inputs,
                      const std::vector<at::Tensor>& constants, ConcreteEval::ElementOf element)
      : graph_(graph), now_(graph, inputs, constants, std::move(element)) {}

  // Whether the operator, or an operator before it, raises. caught: whether the program may catch the error; if so, any
  // amount of work is spent on the answer. Otherwise expensive checks are skipped. Operators must run for real
  // (Capture::StepAside).
  template <class Caught>
  bool raises(ops::Raises cause, graph::OpId op, const std::vector<graph::Arg>& args, Caught&& caught) {
    const std::optional<int64_t> work = this->work(cause, args);
    if (!work || (*work > left_ && !caught())) return false;
    left_ -= std::min(*work, left_);
    return raises(cause, op, args);
  }

 private:
  std::optional<int64_t> work(ops::Raises cause, const std::vector<graph::Arg>& args);
  bool raises(ops::Raises cause, graph::OpId op, const std::vector<graph::Arg>& args);
  bool asks(ops::Raises cause, graph::OpId op, const std::vector<graph::Arg>& args);
  bool raises_itself(graph::OpId op, const std::vector<graph::Arg>& args);
  bool any_outside(graph::ValueId indices, sym::ExprId size, bool from_the_end);
  bool any_outside(graph::ValueId indices, int64_t size, bool from_the_end, std::optional<int64_t> ignored = {});
  bool any_list_outside(graph::ValueId self, const std::vector<graph::OptionalValue>& indices);
  bool divides_by_zero(const std::vector<graph::Arg>& args);

  static constexpr int64_t kWork = int64_t{1} << 24;  // elements: some ten milliseconds per capture
  const graph::Graph& graph_;
  ConcreteEval now_;
  int64_t left_ = kWork;
};

}  // namespace cresset::bridge

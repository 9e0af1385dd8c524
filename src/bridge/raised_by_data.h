// Operators that raise by what their tensors hold: an index out of bounds, a matrix that is singular, a division of
// integers by zero. Their shape rules cannot know. In the call that is captured the very tensors are asked when such an
// operator is met, so that the piece ends before it, and it raises where it stands in the program, inside of the `try`
// around it. Later calls whose data makes one raise are done again by eager.
#pragma once

#include <vector>

#include "bridge/values_now.h"

namespace cresset::bridge {

struct DataCheck;                             // a row of the table
const DataCheck* data_check(graph::OpId op);  // nullptr: it never raises by data
// Whether the operator may raise for what these arguments hold; or nobody knows: it has no rules of ours.
bool may_raise(const graph::Graph& graph, graph::OpId op, const std::vector<graph::Arg>& args);

// Asks what a capture is captured with.
class RaisedByData {
 public:
  RaisedByData(const graph::Graph& graph, const std::vector<at::Tensor>& inputs,
               const std::vector<at::Tensor>& constants, ValuesNow::ElementOf element)
      : graph_(graph), now_(graph, inputs, constants, std::move(element)) {}

  // Whether the operator raises, or one before it. caught: whether the program may catch that; then no work is too
  // much, while otherwise what takes long to know is not asked. Operators must run for real (Capture::StepAside).
  template <class Caught>
  bool raises(const DataCheck& check, graph::OpId op, const std::vector<graph::Arg>& args, Caught&& caught) {
    const std::optional<int64_t> work = this->work(check, args);
    if (!work || (*work > left_ && !caught())) return false;
    left_ -= std::min(*work, left_);
    return raises(check, op, args);
  }

 private:
  std::optional<int64_t> work(const DataCheck& check, const std::vector<graph::Arg>& args);
  bool raises(const DataCheck& check, graph::OpId op, const std::vector<graph::Arg>& args);
  bool asks(const DataCheck& check, graph::OpId op, const std::vector<graph::Arg>& args);
  bool raises_itself(graph::OpId op, const std::vector<graph::Arg>& args);
  bool any_outside(graph::ValueId indices, sym::ExprId size, bool from_the_end);
  bool any_outside(graph::ValueId indices, int64_t size, bool from_the_end, std::optional<int64_t> ignored = {});
  bool any_list_outside(graph::ValueId self, const std::vector<graph::OptionalValue>& indices);
  bool divides_by_zero(const std::vector<graph::Arg>& args);

  static constexpr int64_t kWork = int64_t{1} << 24;  // elements: some ten milliseconds a capture
  const graph::Graph& graph_;
  ValuesNow now_;
  int64_t left_ = kWork;
};

}  // namespace cresset::bridge

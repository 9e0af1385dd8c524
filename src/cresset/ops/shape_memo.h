// A memo of result types in a capture, keyed by operator, the arguments' types and the other arguments.
//
// A model repeats its layers, so most calls ask a shape rule the same question again. An answer stays right for the
// rest of the capture. Rules depend only on types and on the shape environment, and recorded guards hold from then on.
// A rule must therefore not depend on the identity of an argument, nor on its computation.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "ops/op_def.h"

namespace cresset::ops {

// The difference between a call without an answer and the last call of the same operator.
enum class MemoMiss : uint8_t { First, Tensors, Size, Stride, Scalar };
inline constexpr std::array<std::string_view, 5> kMemoMisses{"first of its operator", "tensors, dtypes or ranks",
                                                             "a size", "a stride", "another argument"};

class ShapeMemo {
 public:
  struct Entry {
    Types types;
    bool refused = false;  // the operator's own rule did not cover these arguments
    uint64_t absent = 0;   // positions of results which the call does not return; `types` has the remaining results
  };
  // Returns the answer for a call, or nullptr when there is none; then add() may provide it.
  const Entry* find(const graph::Graph& graph, graph::OpId op, const std::vector<graph::Arg>& args);
  void add(Entry entry);                                                             // for the call of the last find()
  const std::array<int64_t, kMemoMisses.size()>& misses() const { return misses_; }  // of find(), by reason
  size_t size() const { return entries_.size(); }

 private:
  struct Key {
    uint64_t hash;
    size_t begin, end;  // of its words
  };
  void make_key(const graph::Graph& graph, graph::OpId op, const std::vector<graph::Arg>& args);
  void grow();
  void note_miss(const graph::Graph& graph, const std::vector<graph::Arg>& args);

  std::array<int64_t, kMemoMisses.size()> misses_{};
  std::unordered_map<uint32_t, uint32_t> last_;  // operator -> its last key
  std::vector<uint32_t> asked_;                  // the key of the last find()
  uint64_t asked_hash_ = 0;
  std::vector<uint32_t> words_;  // all keys, one after another
  std::vector<Key> keys_;
  std::deque<Entry> entries_;    // parallel to keys_; references stay valid
  std::vector<uint32_t> table_;  // open addressing: index + 1, 0 when free
};

}  // namespace cresset::ops

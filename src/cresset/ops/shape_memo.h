// Result types of calls seen before in one capture, by operator, the arguments' types and the other arguments.
//
// A model repeats its layers: most calls ask a shape rule what it answered already. An answer stays right for the rest
// of the capture: rules look at types and at the shape environment only, whose guards, once recorded, hold from then
// on. A rule must therefore not look at which value an argument is, nor at how it was computed.
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

// In what a call that has no answer yet differs from the last one of its operator.
enum class MemoMiss : uint8_t { First, Tensors, Size, Stride, Scalar };
inline constexpr std::array<std::string_view, 5> kMemoMisses{"first of its operator", "tensors, dtypes or ranks",
                                                             "a size", "a stride", "another argument"};

class ShapeMemo {
 public:
  struct Entry {
    Types types;
    bool refused = false;  // the operator's own rule did not cover these arguments
    uint64_t absent = 0;   // results, by position, that such a call does not give; types are of the others
  };
  // The answer for a call, nullptr when there is none; then add() may give it.
  const Entry* find(const graph::Graph& graph, graph::OpId op, const std::vector<graph::Arg>& args);
  void add(Entry entry);  // for the call that find() was asked about last
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
  std::vector<uint32_t> words_;  // all keys, one after the other
  std::vector<Key> keys_;
  std::deque<Entry> entries_;    // beside keys_; references stay valid
  std::vector<uint32_t> table_;  // open addressing: index + 1, 0 when free
};

}  // namespace cresset::ops

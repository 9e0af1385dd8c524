// The tensor slots of a Program: a slot for each value in memory, created on first use.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "fuse/memory.h"
#include "lower/size_table.h"

namespace cresset::lower {

using fuse::Layout;
using graph::Graph;
using graph::ValueId;
using runtime::TensorId;
using runtime::TensorSlot;

class Slots {
 public:
  Slots(const Graph& graph, fuse::Memory& memory, SizeTable& sizes, runtime::Program& program);

  TensorId base(ValueId owner);                      // the memory itself
  TensorId value(ValueId value);                     // the memory or a view of it
  TensorId fresh(ValueId like, runtime::Home home);  // new memory for the value's type with the strides of eager mode

  TensorId report(uint32_t site, const Device& device);  // the place of a report of indices

  // Memory which outlives the call and must not lie in the arena.
  void escape(ValueId owner) { escaping_.insert(owner); }
  void extern_home(ValueId owner) { extern_homed_.insert(owner); }

 private:
  TensorId add(TensorSlot slot);
  TensorSlot describe(ValueId value, const Layout& layout);
  // The arena is memory of one device. Intermediates of other devices are allocated one by one.
  runtime::Home home_of_intermediate(const Device& device) const {
    return device == arena_ ? runtime::Home::Arena : runtime::Home::Fresh;
  }

  const Graph& graph_;
  fuse::Memory& memory_;
  SizeTable& sizes_;
  runtime::Program& program_;
  const Device arena_;
  std::unordered_map<ValueId, TensorId> slots_;
  std::unordered_map<uint32_t, TensorId> reports_;  // by site
  TensorId all_reports_;
  std::unordered_set<ValueId> escaping_, extern_homed_;
};

}  // namespace cresset::lower

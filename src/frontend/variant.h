// Compiled variants of a function, or of what follows a point in the middle of it.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "bridge/entry.h"
#include "bridge/entry_cache.h"
#include "frontend/arg_spec.h"
#include "frontend/call_hints.h"
#include "frontend/effects.h"
#include "frontend/point.h"
#include "frontend/recipe.h"
#include "frontend/state_facts.h"
#include "frontend/state_guard.h"
#include "frontend/thresholds.h"

namespace cresset::frontend {

struct Point;

// Where a piece ends before its call does: what the frames hold there, and the operation to be done natively.
struct Break {
  std::shared_ptr<Point> point;  // null: the piece goes on to the end of the call
  Recipe frames;
  Operation operation;  // its operands are made by `operands`
  std::vector<Recipe> operands;
  std::vector<PyRef> constants;  // objects that were the same at every call when the piece began
  std::string why;               // and where
};

// A place in the tuples that frames are made of.
struct PlaceInFrames {
  Py_ssize_t frame, part, variable;
};

// The conditions on sizes under which a call raised.
struct RejectedSizes {
  std::shared_ptr<sym::ShapeEnv> env;
  std::vector<bridge::SymbolBinding> symbols;
  size_t tensors = 0;  // of a call
};

// One compiled variant: everything a call is checked against, and how its result is made. `entry` is null when the
// function could not be captured for calls of this kind: they run eagerly.
struct Variant {
  TorchState state, after;   // when the piece begins, and when it ends
  std::vector<PyRef> modes;  // those of state, weakly: an address that is used again is another mode's
  ArgSpec args, kwargs;
  ModuleGuards modules;  // traced: all that the function can reach
  StateFacts facts;      // evaluated: what it read
  std::unique_ptr<bridge::Entry> entry;
  std::vector<Effect> effects;
  bool changes_state = false;           // of objects or tensors that are no arguments
  std::vector<Fate> fates;              // of generators among the arguments
  std::vector<PlaceInFrames> released;  // behind a break: tensors that the program lets go of (released_inputs.h)
  Break next;
  Recipe result;
  uint32_t shared_slots = 0;
  sym::SizeProgram numbers;
  size_t symbol_count = 0;
  std::string eager_reason;
  bool wants_gradients = false;  // it runs eagerly because tensors among the arguments require gradients
  uint64_t used = 0;             // of bridge::EntryCache
  uint64_t loops_of = 0;      // not 0: it holds each round of a loop over sizes, of tensors of these dtypes and ranks
  bool has_served = false;    // a call after the one that was captured
  bool in_inference = false;  // its results are tensors of inference mode, though calls are made outside of it
  bool raised = false;        // while captured the function raised, or was watched: nothing is learned from that
  std::unique_ptr<RejectedSizes> rejected;  // where sizes and types alone made it raise, and that is to be kept

  int visit(visitproc visit, void* arg) const;
};
// A reason to run eagerly.
inline constexpr const char* kGradientsAreWanted = "gradients are wanted";
using Variants = bridge::EntryCache<Variant>;

// What differed between calls (varying.h).
struct Varying {
  std::vector<std::string> ints;     // paths, of floats and texts too
  std::vector<std::string> texts;    // likewise: of those of which no piece should be for one text alone (texts.h)
  std::vector<std::string> objects;  // paths
  std::vector<StateFacts::Source> state;
  // Paths of containers in state that programs handed on without looking into them, and that were of another structure
  // at a later call; and of those that a program looked into all the same.
  std::vector<std::string> not_looked_into, looked_into;
  std::vector<std::string> grown_lists;  // paths of lists that were of many lengths, in arguments and frames
  // Containers in state that were replaced by others about the same tensors (stays_replaced, varying.cpp): how often in
  // a row, of variants that had served no call.
  std::vector<std::pair<StateFacts::Source, int>> replaced;
  // On floats that tensors held when the call began; of their integers and truth values, and of floats as such.
  bool decisions = false, pins = false;
  size_t size() const {
    return ints.size() + texts.size() + objects.size() + state.size() + not_looked_into.size() + looked_into.size() +
           grown_lists.size() + decisions + pins;
  }
  int visit(visitproc visit, void* arg) const;
};

// Whether capturing is worth while: variants that were dropped were compiled in vain, unless others serve calls.
struct Worth {
  int64_t dropped = 0, served = 0;
  bool exhausted() const { return dropped >= threshold::kDropped + served / threshold::kServedForEach; }

  // useful: something was kept that runs compiled code, or learned, so that the next capture will be another one.
  void captured(bool useful) {
    in_vain_ = useful ? 0 : in_vain_ + 1;
    unlike_ = served == served_then_ ? unlike_ + 1 : 1;
    served_then_ = served;
    passed_ = 0;
  }
  bool is_in_vain() const { return beyond() >= 0; }
  // Whether a call that no variant serves goes by without a capture.
  bool rests() {
    if (!is_in_vain()) return false;
    return passed_++ < int64_t{1} << std::min(beyond(), threshold::kLongestRest);
  }

 private:
  // How many captures ago it came to be in vain; below 0: it is not.
  int64_t beyond() const {
    const int64_t unlike = served == served_then_ ? unlike_ : 0;
    return std::max(in_vain_ - threshold::kInVain, unlike - threshold::kDropped);
  }
  int64_t in_vain_ = 0, unlike_ = 0;  // captures in a row of which nothing came; between which no variant served a call
  int64_t served_then_ = 0, passed_ = 0;  // at the last one; calls since then
};

// A place in a function between two pieces, and the pieces that begin there.
struct Point {
  Place place;
  Variants successors;
  CallHints hints;
  Worth worth;
  bool warned = false;       // that there are too many
  bool drops_value = false;  // that the operation gives: None stands for it
  bool plain_sizes = false;  // symbolic ones have no place in what follows
  Varying varying;
};
using Points = std::vector<std::shared_ptr<Point>>;

}  // namespace cresset::frontend

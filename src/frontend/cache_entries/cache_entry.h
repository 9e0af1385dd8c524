// Cache entries (`CacheEntry`) of a function, or of the code after a resume point.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/break_reason.h"
#include "bridge/guarded_program/entry_cache.h"
#include "bridge/guarded_program/guarded_program.h"
#include "frontend/cache_entries/dispatch_cache.h"
#include "frontend/feedback/thresholds.h"
#include "frontend/frames/resume_point.h"
#include "frontend/guards/arg_spec.h"
#include "frontend/guards/size_marks.h"
#include "frontend/guards/state_guards.h"
#include "frontend/guards/torch_modes.h"
#include "frontend/replay/reconstruction.h"
#include "frontend/replay/side_effects.h"

namespace cresset::frontend {

struct ResumePoint;

// The graph break at the end of a segment: the contents of the frames, and the operation for CPython.
struct Break {
  std::shared_ptr<ResumePoint> point;  // null: the segment reaches the end of the call
  Reconstruction frames;
  Operation operation;  // its operands are created by `operands`
  std::vector<Reconstruction> operands;
  std::vector<PyRef> constants;  // objects which were the same at every call when the segment began
  BreakReason why;               // with the source line
};

// A place in the tuples from which frames are built.
struct PlaceInFrames {
  Py_ssize_t frame, part, variable;
};

// The conditions on sizes under which a call raised.
struct RejectedSizes {
  std::shared_ptr<sym::ShapeEnv> env;
  std::vector<bridge::SymbolBinding> symbols;
  size_t tensors = 0;  // of a call
};

// A cache entry: the guards on a call, and the reconstruction of its result. `entry` is null when calls of this kind
// could not be captured; they run in eager mode.
struct CacheEntry {
  TorchState state, after;   // at the beginning and the end of the segment
  std::vector<PyRef> modes;  // weak references to the modes of `state`: a reused address belongs to another mode
  ArgSpec args, kwargs;
  ModuleGuards modules;  // traced: all modules which the function can reach
  StateGuards guards;    // evaluated: the state which it read
  std::unique_ptr<bridge::GuardedProgram> program;
  std::vector<ReplayedEffect> side_effects;
  bool changes_state = false;           // of objects or tensors outside of the arguments
  std::vector<Fate> fates;              // of generators among the arguments
  std::vector<PlaceInFrames> released;  // after a break: tensors which the program releases (released_inputs.h)
  Break next;
  Reconstruction result;
  uint32_t shared_slots = 0;
  sym::SizeProgram numbers;
  size_t symbol_count = 0;
  BreakReason eager_reason;
  bool wants_gradients = false;  // it runs eagerly because tensors among the arguments require gradients
  uint64_t used = 0;             // of bridge::EntryCache
  uint64_t loops_of = 0;      // not 0: it holds each round of a loop over sizes, of tensors of these dtypes and ranks
  bool has_served = false;    // a call after the one that was captured
  bool in_inference = false;  // its results are tensors of inference mode, though calls are made outside of it
  bool raised = false;        // while captured the function raised, or was watched: nothing is learned from that
  std::unique_ptr<RejectedSizes> rejected;  // where sizes and types alone made it raise, and that is to be kept
  MarksOfInputs marks;                      // of tensors with marked dimensions

  int visit(visitproc visit, void* arg) const;
};
using CacheEntries = bridge::EntryCache<CacheEntry>;

// Inputs which differed between calls (automatic_dynamic.h).
struct AutomaticDynamic {
  std::vector<std::string> ints;     // paths, also of floats and strings
  std::vector<std::string> texts;    // paths of strings which segments should not specialize (symbolic_strings.h)
  std::vector<std::string> objects;  // paths
  std::vector<StateGuards::Source> state;
  // Paths of containers in state which programs passed on uninspected, and whose structure differed at a later call.
  // `looked_into`: the containers among them which a program then inspected.
  std::vector<std::string> not_looked_into, looked_into;
  std::vector<std::string> growing_lists;  // paths of lists with many lengths, in arguments and frames
  // Containers in state which were replaced by containers for the same tensors (stays_replaced, automatic_dynamic.cpp).
  // The number counts consecutive replacements of entries which had served no call.
  std::vector<std::pair<StateGuards::Source, int>> replaced;
  // Decisions on floats which tensors held at the beginning of the call; specializations of integers and truth values
  // of tensors, and of floats.
  bool decisions = false, specializations = false;
  size_t size() const {
    return ints.size() + texts.size() + objects.size() + state.size() + not_looked_into.size() + looked_into.size() +
           growing_lists.size() + decisions + specializations;
  }
  int visit(visitproc visit, void* arg) const;
};

// Whether another capture is likely to pay off: dropped entries were compiled in vain, unless other entries serve
// calls.
struct Worth {
  int64_t dropped = 0, served = 0;
  bool exhausted() const { return dropped >= threshold::kDropped + served / threshold::kServedForEach; }

  // useful: the capture kept compiled code, or produced feedback which changes the next capture.
  void captured(bool useful) {
    in_vain_ = useful ? 0 : in_vain_ + 1;
    unlike_ = served == served_then_ ? unlike_ + 1 : 1;
    served_then_ = served;
    passed_ = 0;
  }
  bool is_in_vain() const { return beyond() >= 0; }
  // Whether a call without a fitting entry skips the capture.
  bool rests() {
    if (!is_in_vain()) return false;
    return passed_++ < int64_t{1} << std::min(beyond(), threshold::kLongestRest);
  }

 private:
  // Number of captures since captures became useless; negative: they are not.
  int64_t beyond() const {
    const int64_t unlike = served == served_then_ ? unlike_ : 0;
    return std::max(in_vain_ - threshold::kInVain, unlike - threshold::kDropped);
  }
  int64_t in_vain_ = 0, unlike_ = 0;      // consecutive captures: without use; without a served call in between
  int64_t served_then_ = 0, passed_ = 0;  // at the last capture; calls since then
};

// A resume point: a place between two segments, and the segments which begin there.
struct ResumePoint {
  Place place;
  CacheEntries resume_entries;
  CallHints hints;
  Worth worth;
  bool warned = false;       // about too many segments
  bool drops_value = false;  // the frame drops the result of the operation; None replaces it
  bool plain_sizes = false;  // the following code requires plain sizes
  AutomaticDynamic automatic_dynamic;
};
using ResumePoints = std::vector<std::shared_ptr<ResumePoint>>;

}  // namespace cresset::frontend

// Lists, deques, and dictionaries by numbers, in state that hold other things at each call (a history, a memory bank, a
// buffer): a program for each would be compiled without end. Once a few were, what looks into such a one ends the
// piece, as for objects whose state only C code knows, and no fact says what it holds. The function's own (feedback.h).
#pragma once

#include "frontend/eval/hooks.h"
#include "frontend/state_facts.h"

namespace cresset::frontend {

// Contents that the variants of one place were compiled for, one after another. Under the GIL, as all of this.
class Contents {
 public:
  void count(const StateFacts& facts);        // of a variant
  static void drop(const StateFacts& facts);  // likewise, of one that no later call can fit
  void note() const;                          // what has grown too often
 private:
  std::unordered_map<PyObject*, int> seen_;
};

extern bool any_has_grown;  // of any function in the process: most have none
bool any_grown_here();
inline bool any_grown() { return any_has_grown && any_grown_here(); }
bool is_among_grown(PyObject* object);
inline bool has_grown(PyObject* object) { return any_has_grown && is_among_grown(object); }
// It is looped over, or taken apart, which no piece can end in: it is held to what it holds after all.
void leave_growing(PyObject* object);
// Whether the piece may end because a program looks into it: not where that was so too often, as in a loop over it.
bool may_end_a_piece(PyObject* object);
// Closes a list among the arguments of the piece that begins, or in its frames; until the next one begins.
void close_argument(PyObject* list);
void forget_arguments();
// The call that was captured has ended.
void forget_looks();

}  // namespace cresset::frontend

// Growing containers: lists, deques, and dictionaries with number keys in state whose contents differ at each call, for
// example a history or a memory bank. A program per content would compile without end. After a few such programs the
// container is closed: inspecting it causes a graph break, as for foreign objects, and no guard covers its contents.
// The state belongs to the compiled function (feedback.h).
#pragma once

#include "frontend/eval/hooks.h"
#include "frontend/guards/state_guards.h"

namespace cresset::frontend {

// Counts the contents for which the cache entries of a place were compiled. All functions here need the GIL.
class Contents {
 public:
  void count(const StateGuards& guards);        // of an entry
  static void drop(const StateGuards& guards);  // of an entry which no later call can fit
  void note() const;                            // closes containers with too many contents
 private:
  std::unordered_map<PyObject*, int> seen_;
};

extern bool any_is_growing;  // set if any function in the process has closed a container: most functions have none
bool any_growing_here();
inline bool any_growing() { return any_is_growing && any_growing_here(); }
bool is_among_growing(PyObject* object);
inline bool is_growing_container(PyObject* object) { return any_is_growing && is_among_growing(object); }
// Reopens a container which is looped over or unpacked, since no segment can end there: its contents are guarded again.
void leave_growing(PyObject* object);
// Whether the segment may end because the program inspects the container. False after too many breaks of this kind, for
// example in a loop over it.
bool may_break_graph(PyObject* object);
// Closes a list in the arguments or frames of the segment which begins, until the next segment begins.
void close_argument(PyObject* list);
void forget_arguments();
// Called when the captured call has ended.
void forget_looks();

}  // namespace cresset::frontend

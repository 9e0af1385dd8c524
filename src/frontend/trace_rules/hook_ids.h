// Numbering of the hooks which a captured call registers. During the capture they get numbers of their own, which later
// calls use again (docs/decisions/0010-numbers-of-hooks.md). A hook which outlives the call gets the number which torch
// would have assigned.
#pragma once

#include <vector>

#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {

class HooksOfCall {
 public:
  HooksOfCall() : outer_(current_) { current_ = this; }
  ~HooksOfCall() { current_ = outer_; }
  HooksOfCall(const HooksOfCall&) = delete;

  // torch.utils.hooks.RemovableHandle, borrowed. Its counter `next_id` differs at each call and is excluded from
  // guards.
  static PyObject* counter();
  // A segment begins at this place (nullptr: the start of the call). Its hooks are numbered from a base which belongs
  // to no other segment, so that the handles of a call have distinct numbers.
  static void begin_segment(const void* place);
  static long long next_number();
  // Records a hook of the call which this thread captures, and advances torch's counter. The `id` of the handle is its
  // key in the dictionaries to which `references` (a tuple) refers weakly. The dictionaries hold the key as long as the
  // hook is registered.
  static void note(PyObject* handle, PyObject* references, bool in_own);
  // Called when the call has ended and its capture is gone: surviving hooks get torch's numbers. Returns whether a hook
  // is visible outside: in a dictionary which existed before, or through its handle. Throws PythonError.
  bool number_those_that_stay();

 private:
  struct Hook {
    PyRef handle, references, key, number;
    bool in_own;  // the call created its dictionary
  };
  static thread_local HooksOfCall* current_;
  HooksOfCall* outer_;
  std::vector<Hook> hooks_;
  long long next_ = 0;
};

}  // namespace cresset::frontend

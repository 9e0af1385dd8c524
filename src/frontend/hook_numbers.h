// Hooks that a captured call registers have numbers of their own while it lasts, which later calls have again
// (docs/decisions/0010-numbers-of-hooks.md). One that stays behind is given the number that torch would have given it.
#pragma once

#include <vector>

#include "frontend/py_ref.h"

namespace cresset::frontend {

class HooksOfCall {
 public:
  HooksOfCall() : outer_(current_) { current_ = this; }
  ~HooksOfCall() { current_ = outer_; }
  HooksOfCall(const HooksOfCall&) = delete;

  // torch.utils.hooks.RemovableHandle, borrowed: its `next_id` is another one at each call, and nobody's business.
  static PyObject* counter();
  // A piece begins at this place (nullptr: at the call's start): its hooks are numbered from one on that no other
  // piece's are, so that no two handles of a call share one.
  static void begin_piece(const void* place);
  static long long next_number();
  // Of the call that this thread captures: that counts another one. Its `id` is the key in
  // its dictionaries, to which `references` (a tuple) are weak, for as long as the hook is registered.
  static void note(PyObject* handle, PyObject* references, bool in_own);
  // When the call has ended, and nothing of its capture is left: those that stay behind have torch's numbers. Whether
  // one can be seen: in a dictionary that was there before, or by its handle. Throws PythonError.
  bool number_those_that_stay();

 private:
  struct Hook {
    PyRef handle, references, key, number;
    bool in_own;  // the call made its dictionary
  };
  static thread_local HooksOfCall* current_;
  HooksOfCall* outer_;
  std::vector<Hook> hooks_;
  long long next_ = 0;
};

}  // namespace cresset::frontend

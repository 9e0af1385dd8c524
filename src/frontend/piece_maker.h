#pragma once

#include "frontend/eval/hooks.h"
#include "frontend/py_ref.h"

namespace cresset::frontend {

// Who captures pieces.
class PieceMaker {
 public:
  virtual ~PieceMaker() = default;
  // The piece in progress ended; the operation in progress was done natively and gave `value`, or raised `exception`.
  // Another piece may begin. Returns what goes on in the value's place, where a number is an input of that piece.
  virtual PyRef go_on(CressetActivation* activation, CressetPoint point, PyObject* value,
                      PyObject* exception = nullptr) = 0;
  // The capture had ended inside of calls of C code that call back; the last of them has come back.
  virtual void out_of_calls(CressetActivation* activation) = 0;
  // Forward differentiation begins, inside of which torch may want plain sizes, and no piece can end: whether a piece
  // with such is to begin here, since this capture cannot begin again.
  virtual bool begins_plainly() = 0;
  // Whether the program has let go of the object, which lives since its capture holds it.
  virtual bool only_we_hold(PyObject* object) const = 0;
};

}  // namespace cresset::frontend

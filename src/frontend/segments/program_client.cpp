#include "frontend/segments/program_client.h"

#include <torch/csrc/Exceptions.h>

#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/py_ref.h"
#include "frontend/segments/capture_setup.h"
#include "frontend/values/exceptions.h"

namespace cresset::frontend {

std::optional<at::Scalar> ProgramClient::symbolic_number(const at::Tensor& tensor) {
  return frontend::symbolic_number(tensor);
}

bool ProgramClient::is_held(const at::Tensor& tensor) {
  constexpr Py_ssize_t kOfCall = 2;  // the operand of the call, and the reference here
  const GilHeld gil;
  return Py_REFCNT(python_tensor(tensor).get()) > kOfCall;
}

bool ProgramClient::may_be_caught() { return frontend::may_be_caught(); }

bool ProgramClient::end_in_order(const BreakReason& why) {
  try {
    return end_at_break(why);
  } catch (const PythonError&) {  // torch's code catches only its own exception class
    python_error raised;
    raised.persist();
    throw raised;
  }
}

}  // namespace cresset::frontend

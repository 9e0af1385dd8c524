#include "frontend/segments/program_client.h"

#include <torch/csrc/Exceptions.h>

#include "frontend/cpython/py_ref.h"
#include "frontend/segments/capture_setup.h"
#include "frontend/values/exceptions.h"

namespace cresset::frontend {

std::optional<at::Scalar> ProgramClient::symbolic_number(const at::Tensor& tensor) {
  return frontend::symbolic_number(tensor);
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

// Runs the autograd graph for the capture.
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include "frontend/session/session.h"

namespace cresset::frontend {

void Session::run_subgraph(PyObject* roots, const std::function<void()>& run, AutogradTraceRun& seen) {
  const InProgress around = operation_.in_progress();
  const int kernels = std::exchange(segment_.capture().recording, 0);  // a kernel may have caused a graph break
  subgraphs_.begin_subgraph(roots);
  std::exception_ptr raised;
  watched([&] {
    seen.outside = cresset_eval_current();
    subgraphs_.log_record(&seen);
    const py::gil_scoped_release no_gil;
    try {
      run();
    } catch (const python_error&) {
      seen.failed = true;
      raised = std::current_exception();
    } catch (...) {
      raised = std::current_exception();
    }
    return PyRef();
  });
  subgraphs_.log_record(nullptr);
  if (!raised) subgraphs_.check_changed_back(seen);
  seen.failed |=
      !raised && !segment_.capture().subgraphs().subgraph_failure().empty();  // the function caught the error
  subgraphs_.end_subgraph();
  segment_.capture().recording = kernels;
  operation_.in_progress() = around;
  if (raised) std::rethrow_exception(raised);
}

}  // namespace cresset::frontend

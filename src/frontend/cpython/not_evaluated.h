// Pauses the evaluation of frames while Python code of cresset runs.
#pragma once

#include "frontend/eval/hooks.h"

namespace cresset::frontend {

// Python code which runs during its lifetime is not part of the program.
struct NotEvaluated {
  NotEvaluated() { cresset_eval_pause(); }
  ~NotEvaluated() { cresset_eval_unpause(); }
  NotEvaluated(const NotEvaluated&) = delete;
};

}  // namespace cresset::frontend

// The frames which the evaluator enters: which of them belong to the program, and what their functions hold.
#pragma once

#include "base/address_table.h"
#include "frontend/eval/hooks.h"
#include "frontend/session/read_log.h"

namespace cresset::frontend {

// Reason for not capturing while a trace or profile function or a sys.monitoring tool is active.
inline constexpr const char* kWatched = "somebody watches what runs (a debugger, a profiler, coverage)";

class EnteredFrames {
 public:
  // Machinery: code of symbolic numbers, run in CPython. Replacement: code of cresset._substitutes, which sees
  // symbolic numbers as they are. LoggerQuestion: Logger.isEnabledFor.
  enum class CodeRole : uint8_t { Program, Machinery, Replacement, LoggerQuestion, NestedTensors };

  EnteredFrames(OpenSegment& segment, Provenance& provenance, Subgraphs& subgraphs, ReadLog& reads)
      : segment_(segment), provenance_(provenance), subgraphs_(subgraphs), reads_(reads) {}

  CressetAction enter(CressetActivation& activation);
  // A frame ran in CPython's own loop.
  void unseen();
  CodeRole role_of(PyCodeObject* code);
  // A default value became an argument.
  void learn_default(PyObject* function, PyObject* keyword, PyObject* value);
  // For a function held by the call's own generator: its cells and defaults are older than the call.
  void learn_what_it_holds(PyObject* function);
  // Frames are resumed: the outermost one has begun.
  void resume_outermost() { outermost_frames_ = 1; }
  // Whether the program's outermost frame has ended: finalizers of its objects may be running.
  bool has_ended() const { return outermost_frames_ > 1; }

 private:
  void learn_mode(const CressetActivation& activation);
  void learn_defaults(const CressetActivation& activation);
  void learn_closure(ObjectRecord& function);

  OpenSegment& segment_;
  Provenance& provenance_;
  Subgraphs& subgraphs_;
  ReadLog& reads_;
  AddressTable<PyCodeObject*, CodeRole> roles_;
  int outermost_frames_ = 0;  // number of outermost frames entered in sequence
};

}  // namespace cresset::frontend

// The profile of a function's sizes (sym/profile.h), in a file which processes share.
//
// The file lies in the folder `profiles` of the cache folder. Its name depends on the function's module, qualified name
// and bytecode, and not on paths or line numbers. A folder of profiles can therefore be shipped to another machine.
#pragma once

#include <Python.h>

#include <string>

#include "bridge/capture/capture.h"
#include "frontend/guards/arg_spec.h"
#include "sym/profile.h"

namespace cresset::frontend {

class ShapeProfile {
 public:
  // Reads the profiles of earlier runs.
  explicit ShapeProfile(PyObject* function);

  // Adds the paths of ints and floats which are symbols from the first call on.
  void add_varying(std::vector<std::string>& paths) const;
  // Records the sizes and numbers of a call which compiles.
  void observe(const ArgSpec& args, const ArgSpec& kwargs, const CallLeaves& leaves);
  // Mode "auto": sizes which have not varied are static.
  void mark_static(const std::string& tensor, std::vector<bridge::DimMark>& marks) const;
  // Called after a capture: records symbols which were specialized.
  void note_outcome(sym::ShapeEnv& env);
  // Records the floats which the program inspected.
  void note_floats(const ArgSpec& args);
  // Merges with the current file.
  void save();

 private:
  std::string file_;  // empty: kept in memory only
  sym::Profile profile_;
};

}  // namespace cresset::frontend

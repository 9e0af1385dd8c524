// The profile of one function's sizes (sym/profile.h), kept in a file that processes share.
//
// The file lies in the folder `profiles` of the cache folder, under a name made of the function's module, qualified
// name and bytecode: not of paths or line numbers, so that a folder of profiles can be shipped to another machine.
#pragma once

#include <Python.h>

#include <string>

#include "bridge/capture.h"
#include "frontend/arg_spec.h"
#include "sym/profile.h"

namespace cresset::frontend {

class ShapeProfile {
 public:
  // Reads what earlier runs left.
  explicit ShapeProfile(PyObject* function);

  // Paths of ints and floats that are to be symbols from the first call on, added to those that are known.
  void add_varying(std::vector<std::string>& paths) const;
  // The sizes and numbers of a call for which something is compiled.
  void observe(const ArgSpec& args, const ArgSpec& kwargs, const CallLeaves& leaves);
  // "auto": what did not vary is static.
  void mark_static(const std::string& tensor, std::vector<bridge::DimMark>& marks) const;
  // After a capture: sizes that were symbols and got one value.
  void note_outcome(sym::ShapeEnv& env);
  // Likewise of floats: those that a program looked at.
  void note_floats(const ArgSpec& args);
  // Merges with the file as it is now.
  void save();

 private:
  std::string file_;  // empty: kept in memory only
  sym::Profile profile_;
};

}  // namespace cresset::frontend

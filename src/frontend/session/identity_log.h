// Guards on object identity. Tensors, containers and objects among the arguments are guarded by structure. The program
// may ask for their identity: as a dict key, as a member of a set, by `is`, or by address. Later calls are then guarded
// on the identity as well.
#pragma once

#include <utility>
#include <vector>

#include "frontend/session/asked_addresses.h"
#include "frontend/session/open_segment.h"
#include "frontend/session/provenance.h"

namespace cresset::frontend {

class IdentityLog {
 public:
  IdentityLog(OpenSegment& segment, Provenance& provenance, AskedAddresses& addresses)
      : segment_(segment), provenance_(provenance), addresses_(addresses) {}

  void begin() { values_.clear(); }  // also when the segment ends: the specs belong to its cache entry
  // An argument whose identity is not determined by a guard on its value.
  void note_value(const ArgSpec& spec, PyObject* object);
  void note_text(const ArgSpec& spec) { values_.emplace_back(const_cast<ArgSpec*>(&spec), spec.first.get()); }
  // A lookup of a key in a container, and its result.
  void note_key(PyObject* container, PyObject* key, bool found);
  // Looks a key up in a dictionary or a set by C code alone.
  void note_member(PyObject* container, PyObject* key);
  // Guards the results of `is` for these arguments, and which of them are the same object.
  void note_is_of_values(PyObject* left, PyObject* right);

 private:
  OpenSegment& segment_;
  Provenance& provenance_;
  AskedAddresses& addresses_;
  std::vector<std::pair<ArgSpec*, PyObject*>> values_;  // borrowed: tuples and constants of arguments
};

}  // namespace cresset::frontend

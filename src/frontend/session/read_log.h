// The reads of objects that are older than the call. A read of a known object becomes a guard (state_guards.h), and the
// value becomes known. Objects created during the call are not known, and their reads are not recorded.
//
// Invariants: each (object, key) is recorded once. A guard is recorded before the value that it leads to is learned.
// Attributes and names of frames are above this class (attribute_reads.h, entered_frames.h).
#pragma once

#include <c10/util/flat_hash_map.h>

#include <array>
#include <vector>

#include "base/address_table.h"
#include "frontend/cpython/constant_values.h"
#include "frontend/session/identity_log.h"
#include "frontend/session/open_segment.h"
#include "frontend/session/provenance.h"
#include "frontend/session/subgraphs.h"

namespace cresset::frontend {

class ReadLog {
 public:
  ReadLog(OpenSegment& segment, Provenance& provenance, Subgraphs& subgraphs, IdentityLog& identities)
      : segment_(segment), provenance_(provenance), subgraphs_(subgraphs), identities_(identities) {}

  void begin();
  // Excludes the compiler's own state, which differs during capture, from guards.
  void ignore(PyObject* dict_or_class, const char* key);

  // ---- Objects which become known

  void learn(PyObject* object) {
    if (object != nullptr && !is_constant_value(object)) learn_object(object);
  }
  // An object which is guarded elsewhere, including its class.
  void learn_guarded(PyObject* object);
  void learn_function(PyObject* function);  // with the components of a bound method
  // Guards the class of an object of the call, if the class is older and was reached without a hook.
  void learn_old_class(PyTypeObject* type);
  // Guards the keys that program code compares, and the items of sets.
  void learn_keys(PyObject* container);
  // Objects without a guard are assumed to be from the call. If such an object is older than the call, a hook missed a
  // read, and later calls would not be guarded on its contents.
  void meet_unknown(PyObject* object);

  // ---- Reads

  // Whether the call reads or writes the key for the first time.
  bool first(PyObject* container, PyObject* key) {
    provenance_.note_look(container);
    return seen_.insert({container, key});
  }
  bool has_read(PyObject* container, PyObject* key) const { return seen_.contains({container, key}); }
  // The attribute is known without a guard on it.
  void mark_seen(PyObject* container, PyObject* key) { seen_.insert({container, key}); }
  // Marks the key as read without a guard.
  void mark_read(PyObject* container, PyObject* key);
  void read_key(PyObject* dict, PyObject* key, PyObject* value) { read_key(provenance_.record(dict), key, value); }
  void read_key(ObjectRecord& dict, PyObject* key, PyObject* value);
  void read_whole(PyObject* container, int depth = 0);
  void read_deep(PyObject* object, int depth = 0);  // including nested containers of the call
  // Also reads the value in the container.
  void read_contains(PyObject* container, PyObject* item, bool found = false);
  // The program looks up a name in a class that it did not create.
  void read_class(PyTypeObject* type, PyObject* name);
  // The result of a C getter: guarded if a second call returns the same value.
  void read_computed(PyObject* owner, PyObject* name, PyObject* found, PyObject* value);
  void read_item(PyObject* container, PyObject* key, PyObject* value);
  void read_cell(PyObject* cell, PyObject* value);
  void read_weakref(PyObject* reference, PyObject* result);
  // Lifts an older tensor to a constant of the program, which guards its sizes, dtype, ...
  void hold_metadata(PyObject* tensor);
  // C methods which look an argument up. All other methods report the key that they read.
  void note_keys(const CCall& what, const CressetCall& call);
  // Two objects, compared by `is`. The guard that led to an object in state determines its identity.
  void note_is(PyObject* left, PyObject* right);
  // A guard would keep a generator alive, and the generator differs at each call.
  bool refuse_generator(PyObject* value, PyObject* container = nullptr, PyObject* key = nullptr);

 private:
  void learn_object(PyObject* object);
  void meet(PyObject* object);
  void learn_class(PyTypeObject* type);
  // Objects behind an identity-guarded object; calls and reads of it lead to them at every call.
  static std::vector<PyRef> behind(PyObject* object);
  void look_at_sum(PyObject* list);
  bool is_first_read(ObjectRecord& dict, PyObject* key) {
    const uint64_t bit = uint64_t{1} << (address_hash(key) >> 58),
                   met = std::exchange(dict.keys_met, dict.keys_met | bit);
    return ((met & bit) == 0 && !dict.listed) || is_listed_first(dict, key);
  }
  bool is_listed_first(ObjectRecord& dict, PyObject* key);
  void list_keys(ObjectRecord& dict);
  bool is_value_as_key(PyObject* key) const;
  PyObject* one_key(PyObject* key);
  void read_asked(ObjectRecord& dict, PyObject* key, PyObject* value);

  OpenSegment& segment_;
  Provenance& provenance_;
  Subgraphs& subgraphs_;
  IdentityLog& identities_;
  AddressSet<AddressPair> seen_, ignored_;
  PyRef keys_met_;                                           // maps equal keys to a single object
  static constexpr int kClassReads = 8;                      // bits
  std::array<AddressPair, 1 << kClassReads> class_reads_{};  // a cache of seen_ entries: (class, name)
};

}  // namespace cresset::frontend

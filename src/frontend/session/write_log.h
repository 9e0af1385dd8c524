// The side effects of a call on objects which existed before it. Writes happen for real; writes to known objects are
// stored for replay (replay/side_effects.h), in their order.
//
// Invariants: a container's earlier contents are copied before its first write. A write keeps its values alive.
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "frontend/cpython/logged_write.h"
#include "frontend/eval/hooks.h"
#include "frontend/session/asked_addresses.h"
#include "frontend/session/attribute_reads.h"
#include "frontend/session/observed_lives.h"
#include "frontend/session/read_log.h"
#include "frontend/trace_rules/c_function_effects.h"

namespace cresset::frontend {

class WriteLog {
 public:
  WriteLog(OpenSegment& segment, Provenance& provenance, Subgraphs& subgraphs, AskedAddresses& addresses,
           IdentityLog& identities, ReadLog& reads, AttributeReads& attributes, ObservedLives& lives)
      : segment_(segment),
        provenance_(provenance),
        subgraphs_(subgraphs),
        addresses_(addresses),
        identities_(identities),
        reads_(reads),
        attributes_(attributes),
        lives_(lives) {}

  void begin();
  int visit_held(visitproc visit, void* arg) const;
  void let_go();
  std::vector<LoggedWrite>& entries() { return writes_; }
  const std::vector<LoggedWrite>& entries() const { return writes_; }

  // ---- Statements

  bool before_write(const CressetWrite& write);  // whether the write is to run as a call
  void after_write(const CressetWrite& write);
  // Reading a missing key from an older defaultdict is a write.
  void will_insert(PyObject* dict, PyObject* key);
  // The read of an item which will_insert() announced; false for other reads.
  bool did_insert(PyObject* container, PyObject* key, PyObject* value);

  // ---- Calls

  void will_write(PyObject* container);
  // setattr(owner, name, value), delattr(owner, name), owner.__setattr__(name, value).
  void will_set_attribute(const CCall& what, const CressetCall& call);
  void will_add(PyObject* set, PyObject* item) { added_.emplace_back(set, item); }
  void add_write(LoggedWrite write);
  void log_attribute(PyObject* owner, PyObject* name, PyObject* value);
  // Replay calls the C method and not an override in a subclass.
  void log_method(const CCall& what, const CressetCall& call);
  // The activation performs its next operation itself, and not inside of a __hash__ or __eq__.
  void forget_asking(const CressetActivation* activation) {
    if (asked_in_ == activation) asked_in_ = nullptr;
  }
  void use_context_variable(PyObject* variable, bool will_change);
  // Refuses the segment if it leaves a context variable changed.
  void check_context_variables();

  // Whether the reason of a refusal is a change of a class from an earlier segment, which later calls would share.
  bool changes_shared_class();

 private:
  struct Rules;  // write_log.cpp
  bool writes_to_array(const CressetWrite& write);
  void no_effects_again(PyObject* callable);
  bool takes_back(const CCall& what, const CressetCall& call);
  void will_write_class(PyTypeObject* type);
  void will_decorate(PyTypeObject* type);
  void refuse_shared_class(PyTypeObject* type);
  void log_class(PyTypeObject* type, PyObject* name);

  OpenSegment& segment_;
  Provenance& provenance_;
  Subgraphs& subgraphs_;
  AskedAddresses& addresses_;
  IdentityLog& identities_;
  ReadLog& reads_;
  AttributeReads& attributes_;
  ObservedLives& lives_;
  std::vector<LoggedWrite> writes_;
  std::unordered_map<PyObject*, PyRef> variables_before_;   // context variables which were set
  std::vector<std::pair<PyObject*, PyObject*>> added_;      // (set, item) pairs which the call adds
  std::vector<std::pair<PyObject*, PyObject*>> inserting_;  // (defaultdict, key) of a read which inserts the key
  bool changes_shared_class_ = false, had_key_ = false;     // of the write in progress
  std::vector<std::pair<PyRef, unsigned>> decorated_;       // written classes of earlier segments; their previous flags
  const CressetActivation* asked_in_ = nullptr;
};

}  // namespace cresset::frontend

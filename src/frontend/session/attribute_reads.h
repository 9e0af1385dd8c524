// The reads of attributes: by the evaluator's hook, by getattr() in C code, and by copying or pickling a whole object.
// Each of them ends in reads of dictionaries, slots and classes, which ReadLog records.
#pragma once

#include "frontend/eval/hooks.h"
#include "frontend/session/open_segment.h"
#include "frontend/session/provenance.h"
#include "frontend/session/read_log.h"
#include "frontend/session/subgraphs.h"

namespace cresset::frontend {

class AttributeReads {
 public:
  AttributeReads(OpenSegment& segment, Provenance& provenance, Subgraphs& subgraphs, ReadLog& reads)
      : segment_(segment), provenance_(provenance), subgraphs_(subgraphs), reads_(reads) {}

  void read_attribute(const CressetAttributeRead& read);
  // getattr(owner, name), reported only with its result.
  void read_attribute(PyObject* owner, PyObject* name, PyObject* value);
  // The statement `import name` returned `value`, a module or its package.
  void read_module(PyObject* modules, PyObject* name, PyObject* value);
  // Reads the whole object, as copying and pickling do.
  void read_all(PyObject* object);
  bool looks_into_opaque(const CressetAttributeRead& read);  // reads its own state and not its class
  // Attributes only of the call's own tensors: their gradient, attributes set by user code.
  bool is_of_this_call(PyObject* tensor, PyObject* name) const;

 private:
  void read_of_tensor(PyObject* tensor, PyObject* name);
  void read_of_new(const CressetAttributeRead& read);
  void read_stores(const CressetAttributeRead& read);
  void read_super(const CressetAttributeRead& read);
  void read_instance(ObjectRecord& owner, PyObject* name, PyObject* value);
  void adopt_module(PyObject* module);

  OpenSegment& segment_;
  Provenance& provenance_;
  Subgraphs& subgraphs_;
  ReadLog& reads_;
};

// The .data of a tensor that is not from the call: an alias of its memory, which no operator reports.
bool asks_for_data(const CressetAttributeRead& read);

}  // namespace cresset::frontend

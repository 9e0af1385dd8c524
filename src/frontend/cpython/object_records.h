// The session's records of the objects which a segment met, by address. A record does not move while other records are
// added, so a caller can look it up once and keep the reference.
#pragma once

#include <memory>
#include <vector>

#include "base/address_table.h"
#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {

struct ObjectRecord {
  PyObject* object = nullptr;     // borrowed
  PyRef kept;                     // set for known objects
  ObjectRecord* names = nullptr;  // the record of the dictionary which held the attributes at the last read
  uint32_t guard = 0;             // of a dictionary: its record among the guards (StateGuards::dict_item)
  uint64_t keys_met = 0;          // of a dictionary: a bit per read key; keys may share bits
  bool listed = false;            // of a dictionary: its reads stand in a table, not only among the guards
  bool known = false;             // existed before the call and was reached
  bool made = false;              // created by the call and written into an older object
  bool whole = false;             // all contents are guarded already
  bool looked = false;            // part of the earlier contents was read
  bool keys_written = false;      // a namespace which the call wrote to
  bool dictionary_held = false;
  bool function_held = false;  // of a function: its identity, code and cells are guarded
};

struct ArgSpec;

// An input of a segment which the segment need not inspect.
struct MayBeUnlooked {
  ArgSpec* spec;  // borrowed from the cache entry
  PyObject* object;
  PyRef path;             // of plain data among the arguments
  bool measured = false;  // of plain data: its len() was asked for
};

// A result of id(): its object and the code which called id().
struct AskedAddress {
  PyObject* object;  // borrowed
  PyRef code, asked;
  int instruction;
};

class ObjectRecords {
 public:
  ObjectRecord* find(PyObject* object) const {
    ObjectRecord* const* const found = places_.find(object);
    return found != nullptr ? *found : nullptr;
  }
  ObjectRecord& operator[](PyObject* object) {
    ObjectRecord* const known = find(object);
    return known != nullptr ? *known : make(object);
  }
  void clear() {
    places_.clear();
    blocks_.clear();
    used_ = kBlock;
  }
  // visit(record), in the order of creation.
  template <class Visit>
  void each(Visit&& visit) const {
    for (size_t i = 0; i < blocks_.size(); ++i)
      for (size_t j = 0; j < (i + 1 == blocks_.size() ? used_ : kBlock); ++j) visit(blocks_[i][j]);
  }

 private:
  static constexpr size_t kBlock = 128;

  [[gnu::noinline]] ObjectRecord& make(PyObject* object) {
    if (used_ == kBlock) blocks_.push_back(std::make_unique<ObjectRecord[]>(kBlock)), used_ = 0;
    ObjectRecord& record = blocks_.back()[used_++];
    record.object = object;
    places_[object] = &record;
    return record;
  }

  AddressTable<PyObject*, ObjectRecord*> places_;
  std::vector<std::unique_ptr<ObjectRecord[]>> blocks_;
  size_t used_ = kBlock;  // of the last block
};

}  // namespace cresset::frontend

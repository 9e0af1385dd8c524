// What a session knows of the objects that a piece met, by address. A record stays where it is while others are made:
// who reads several things of one object looks it up once.
#pragma once

#include <memory>
#include <vector>

#include "base/address_table.h"
#include "frontend/py_ref.h"

namespace cresset::frontend {

struct ObjectRecord {
  PyObject* object = nullptr;     // borrowed
  PyRef kept;                     // of known ones
  ObjectRecord* names = nullptr;  // of the dictionary that held its attributes when they were last asked for
  uint32_t fact = 0;              // of a dictionary: its record among the facts (StateFacts::dict_item)
  uint64_t keys_met = 0;          // likewise: a bit for each key that was read, which others may share
  bool listed = false;            // likewise: what was read of it stands in a table, and not among the facts alone
  bool known = false;             // it existed before the call, and was reached
  bool made = false;              // an object of the call that was written into what existed
  bool whole = false;             // all that it holds is a fact already, or guarded elsewhere
  bool looked = false;            // something of what it held before was asked for
  bool keys_written = false;      // a namespace that the call wrote to
  bool dictionary_held = false;
  bool function_held = false;  // of a function: that it stays what it is, and so do its cells, is a fact
};

struct ArgSpec;

// What a piece is given, and may not look into.
struct MayBeUnlooked {
  ArgSpec* spec;  // borrowed: the variant's
  PyObject* object;
  PyRef path;             // of plain data among the arguments
  bool measured = false;  // likewise: its len() was asked for
};

// What id() gave: of which object, and who asked.
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
  // visit(record), in the order in which they were made.
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

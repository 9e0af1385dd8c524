// Facts about the classes of objects that a program met, and about the functions that it ran.
//
// A class is compared by its version tag; when the tag differs, by what its namespaces (those of its MRO) held: a
// change counts if the program can have seen it. Those are the names that it looked up, special methods, which C code
// looks up unseen, and, if it may have made instances, all of them. What nobody asked for may change: a counter in the
// class, an __init__ that somebody wraps later.
#pragma once

#include <c10/util/flat_hash_map.h>

#include <functional>
#include <string>
#include <vector>

#include "frontend/py_ref.h"
#include "frontend/unchanged.h"

namespace cresset::frontend {

class ClassFacts {
 public:
  struct Type {
    PyRef type, mro;
    std::vector<size_t> namespaces;  // of the classes of the MRO that can change
    ska::flat_hash_set<PyObject*> names;
    std::vector<PyRef> kept_names;
    bool makes_instances = false;
  };
  struct Instance {
    PyRef object, type;
  };
  struct Dictionary {
    PyRef object;
    PyObject* const* place;  // in the object
    PyRef dict;
  };
  struct Abstract {
    PyRef type, registered;
  };
  struct Function {
    PyRef function, code, defaults, keyword_defaults;
  };

  // With its bases: methods, descriptors, class attributes. nullptr for a class that cannot change.
  Type* type(PyTypeObject* type);
  void name(PyTypeObject* type, PyObject* name);
  void makes_instances(PyTypeObject* type);
  // The object stays of its class. Told once of each.
  void instance(PyObject* object);
  // It keeps its attributes in this dictionary.
  void dictionary(PyObject* object, PyObject* dict);
  // No class is registered with this abstract one, or with one derived from it.
  void abstract(PyTypeObject* type);
  // The function stays what it is: its code and its defaults.
  void function(PyObject* function);

  bool holds(std::string* why);
  size_t size() const { return types_.size() + instances_.size() + functions_.size(); }
  void texts(std::vector<std::string>& out) const;
  int visit(visitproc visit, void* arg) const;
  const std::vector<Type>& types() const { return types_; }
  const std::vector<Function>& functions() const { return functions_; }
  // What the class itself has under this name is told otherwise (an input of the program), or written by the call
  // before it is read: no fact speaks of it.
  void elsewhere(PyTypeObject* type, PyObject* name);
  // Whether a lookup of the name that is a fact may have found it in this very class.
  bool speaks_of(PyTypeObject* type, PyObject* name) const;
  // Names that the facts speak of, and that stand for something else now: (class, name, then, now).
  using Changed = std::function<void(PyObject*, PyObject*, PyObject*, PyObject*)>;
  void changed(const Changed& tell) const;
  // Keeps the chosen ones; instances are held to their classes when those are kept.
  void filter(const std::vector<bool>& types, const std::vector<bool>& functions);

 private:
  struct Namespace {
    PyRef type, contents;  // a copy
    uint64_t version;
  };
  struct Name {
    PyObject *type, *name;  // the name is interned
    bool operator==(const Name&) const = default;
  };
  struct NameHash {
    size_t operator()(const Name& n) const {
      return reinterpret_cast<size_t>(n.type) * 31 ^ reinterpret_cast<size_t>(n.name);
    }
  };
  bool counts(const Type& fact, const Namespace& then, PyObject* name) const;
  size_t namespace_of(PyTypeObject* type);
  bool types_hold(std::string* why);
  bool abstracts_hold(std::string* why);
  bool objects_hold(std::string* why);
  void hold_objects();
  bool same(const Type& fact, std::string* why) const;
  bool same(const Type& fact, const Namespace& then, std::string* why) const;

  struct TypeTag {
    PyTypeObject* type;
    unsigned version;  // when the fact was seen to hold; 0: look again
  };

  std::vector<Type> types_;
  std::vector<TypeTag> tags_;  // of types_
  std::vector<Instance> instances_;
  std::vector<Dictionary> dictionaries_;
  std::vector<HeldObject> held_;  // what these two say, an object once
  size_t held_count_ = 0;         // of their facts
  std::vector<Function> functions_;
  std::vector<Abstract> abstracts_;
  PyRef token_;  // of all registrations, when the abstract classes were looked at
  std::vector<Namespace> namespaces_;
  ska::flat_hash_set<Name, NameHash> elsewhere_;
  std::vector<PyRef> kept_;
  ska::flat_hash_map<PyObject*, size_t> type_of_, namespace_of_;
  ska::flat_hash_set<PyObject*> known_functions_;
};

// Whether the name is one that C code looks up of itself.
bool is_special_name(PyObject* name);

}  // namespace cresset::frontend

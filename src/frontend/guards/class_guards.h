// Guards on the classes of objects which a program met, and on the functions which it ran.
//
// A class guard compares the version tag first. When the tag differs, the guard compares the namespaces of the classes
// in the MRO. A change counts only if the program can have seen it. The visible names are the names which the program
// looked up and the special methods, which C code looks up without a hook. If the program may have created instances,
// all names are visible. Other names may change, such as a counter in the class or an `__init__` which is wrapped
// later.
#pragma once

#include <c10/util/flat_hash_map.h>

#include <functional>
#include <string>
#include <vector>

#include "frontend/cpython/py_ref.h"
#include "frontend/guards/dict_versions.h"

namespace cresset::frontend {

class ClassGuards {
 public:
  struct Type {
    PyRef type, mro;
    std::vector<size_t> namespaces;  // of the mutable classes in the MRO
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
    PyRef type;
    PyRef registered;                             // with it and its derived classes
    std::vector<std::pair<PyRef, bool>> answers;  // by class
    bool answers_hold() const;
  };
  struct Function {
    PyRef function, code, defaults, keyword_defaults;
  };

  // Guards the class with its bases: methods, descriptors, class attributes. Returns nullptr for an immutable class.
  Type* type(PyTypeObject* type);
  void name(PyTypeObject* type, PyObject* name);
  void makes_instances(PyTypeObject* type);
  // Guards the class of the object. Callers report each object once.
  void instance(PyObject* object);
  // Guards the identity of the dictionary which holds the object's attributes.
  void dictionary(PyObject* object, PyObject* dict);
  // Guards the answer of an abstract class to whether the class is one of its own. Registrations may change it.
  void abstract(PyTypeObject* type, PyObject* asked, bool answer);
  // Guards the code and the defaults of the function.
  void function(PyObject* function);

  bool holds(std::string* why);
  size_t size() const { return types_.size() + instances_.size() + functions_.size(); }
  void texts(std::vector<std::string>& out) const;
  int visit(visitproc visit, void* arg) const;
  const std::vector<Type>& types() const { return types_; }
  const std::vector<Function>& functions() const { return functions_; }
  // Excludes a name of the class itself from the guards: it is an input of the program, or the call writes it before
  // reading it.
  void elsewhere(PyTypeObject* type, PyObject* name);
  // Whether a guarded lookup of the name may have found it in this very class.
  bool speaks_of(PyTypeObject* type, PyObject* name) const;
  // Reports guarded names whose value has changed: (class, name, old value, new value).
  using Changed = std::function<void(PyObject*, PyObject*, PyObject*, PyObject*)>;
  void changed(const Changed& tell) const;
  // Keeps the chosen guards. Instance guards stay when the guards on their classes stay.
  void filter(const std::vector<bool>& types, const std::vector<bool>& functions);

 private:
  struct Namespace {
    PyRef type, contents;  // contents: a copy
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
  bool counts(const Type& guard, const Namespace& then, PyObject* name) const;
  size_t namespace_of(PyTypeObject* type);
  bool types_hold(std::string* why);
  bool abstracts_hold(std::string* why);
  bool objects_hold(std::string* why);
  void hold_objects();
  bool same(const Type& guard, std::string* why) const;
  bool same(const Type& guard, const Namespace& then, std::string* why) const;

  struct TypeTag {
    PyTypeObject* type;
    unsigned version;  // at the last successful check; 0: the comparison must be repeated
  };

  std::vector<Type> types_;
  std::vector<TypeTag> tags_;  // of types_
  std::vector<Instance> instances_;
  std::vector<Dictionary> dictionaries_;
  std::vector<HeldObject> held_;  // the merged content of instances_ and dictionaries_, one record per object
  size_t held_count_ = 0;         // number of their guards
  std::vector<Function> functions_;
  std::vector<Abstract> abstracts_;
  PyRef token_;  // the ABC registration token at the time of the recording
  std::vector<Namespace> namespaces_;
  ska::flat_hash_set<Name, NameHash> elsewhere_;
  std::vector<PyRef> kept_;
  ska::flat_hash_map<PyObject*, size_t> type_of_, namespace_of_;
  ska::flat_hash_set<PyObject*> known_functions_;
};

// Whether C code looks this name up on its own.
bool is_special_name(PyObject* name);

}  // namespace cresset::frontend

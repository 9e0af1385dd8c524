#include <opcode.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "frontend/cpython/py_objects.h"
#include "frontend/session/session.h"
#include "frontend/trace_rules/c_function_effects.h"

namespace cresset::frontend {

static bool has_own_length(PyObject* object) {
  return PyList_CheckExact(object) || PyDict_CheckExact(object) || PySet_CheckExact(object) ||
         (is_deque(object) && !is_data_object(object));
}

// A write that changes the length of a list or deque by the same amount at each call, or not at all.
static bool grows_evenly(const LoggedWrite& write) {
  static constexpr std::string_view kNames[] = {"append", "appendleft", "insert", "extend", "extendleft"};
  if (write.kind == LoggedWrite::Kind::Item) return PyLong_CheckExact(write.key.get()) && !write.values.empty();
  if (write.kind == LoggedWrite::Kind::InPlace) return write.operation == NB_INPLACE_ADD;
  if (write.kind != LoggedWrite::Kind::Method || !Py_IS_TYPE(write.key.get(), &PyMethodDescr_Type)) return false;
  const std::string_view name = ((PyMethodDescrObject*)write.key.get())->d_method->ml_name;
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

static bool has_room(PyObject* container) {
  if (PyList_CheckExact(container)) return true;
  const PyRef most = is_deque(container) ? checked(PyObject_GetAttrString(container, "maxlen")) : PyRef();
  return most.get() == Py_None;
}

// Empty for other calls, and when the items are guarded already or must be.
PyRef length_in_state(const CressetCall& call, Session& session) {
  if (call.callable != StateGuards::Source::len() || call.nargs != 1 || call.kwnames != nullptr) return {};
  PyObject* const container = call.args[0];
  if (!has_own_length(container) || session.subgraphs().is_inside() || session.subgraphs().runs_record()) return {};
  if (MayBeUnlooked* const data = session.provenance().plain_data(container))
    return data->measured = true, checked(PyLong_FromSsize_t(PyObject_Size(container)));
  const ObjectRecord* const record = session.provenance().record_of(container);
  if (record == nullptr || !record->known || record->whole || session.provenance().argument_path(container) != nullptr)
    return {};
  PyObject* const before = session.provenance().contents_before(container);
  if (record->keys_written && before == nullptr) return {};
  const std::vector<LoggedWrite>& writes = session.writes().entries();
  if (before != nullptr &&
      !(has_room(container) && std::all_of(writes.begin(), writes.end(), [&](const LoggedWrite& w) {
          return w.owner.get() != container || grows_evenly(w);
        })))
    return {};
  const Py_ssize_t now = PyObject_Size(container);
  if (const StateGuards::Input* const input = session.segment().guards().length_input(container);
      input != nullptr && input->given) {
    if (now == input->length) return input->given;
    return checked(PyNumber_Add(input->given.get(), checked(PyLong_FromSsize_t(now - input->length)).get()));
  }
  session.segment().guards().length(container, before != nullptr ? PyObject_Size(before) : now);
  return checked(PyLong_FromSsize_t(now));
}

}  // namespace cresset::frontend

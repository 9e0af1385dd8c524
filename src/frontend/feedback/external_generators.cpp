#include "frontend/feedback/external_generators.h"

#include "frontend/feedback/feedback.h"

namespace cresset::frontend {

void note_outsider(PyObject* generator) {
  Feedback* const feedback = Feedback::current();
  if (feedback == nullptr || is_outsider(generator)) return;
  PyRef reference = PyRef::steal(PyWeakref_NewRef(generator, nullptr));
  if (!reference) return PyErr_Clear();
  std::erase_if(feedback->outsiders,
                [](const auto& known) { return PyWeakref_GetObject(known.second.get()) == Py_None; });
  feedback->outsiders[generator] = std::move(reference);
  any_outsiders = true;
}

bool any_outsiders = false;

bool is_known_outsider(PyObject* object) {
  const Feedback* const feedback = Feedback::current();
  if (feedback == nullptr || feedback->outsiders.empty()) return false;
  const auto found = feedback->outsiders.find(object);
  return found != feedback->outsiders.end() && PyWeakref_GetObject(found->second.get()) == object;
}

}  // namespace cresset::frontend

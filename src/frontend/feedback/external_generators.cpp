#include "frontend/feedback/external_generators.h"

#include "frontend/feedback/feedback.h"

namespace cresset::frontend {

void note_external_generator(PyObject* generator) {
  Feedback* const feedback = Feedback::current();
  if (feedback == nullptr || is_external_generator(generator)) return;
  PyRef reference = PyRef::steal(PyWeakref_NewRef(generator, nullptr));
  if (!reference) return PyErr_Clear();
  std::erase_if(feedback->external_generators,
                [](const auto& known) { return PyWeakref_GetObject(known.second.get()) == Py_None; });
  feedback->external_generators[generator] = std::move(reference);
  any_external_generators = true;
}

bool any_external_generators = false;

bool is_known_external_generator(PyObject* object) {
  const Feedback* const feedback = Feedback::current();
  if (feedback == nullptr || feedback->external_generators.empty()) return false;
  const auto found = feedback->external_generators.find(object);
  return found != feedback->external_generators.end() && PyWeakref_GetObject(found->second.get()) == object;
}

}  // namespace cresset::frontend

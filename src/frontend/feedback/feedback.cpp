#include "frontend/feedback/feedback.h"

#include "bridge/symbolic/unpredictable.h"
#include "frontend/cpython/py_objects.h"

namespace cresset::frontend {
namespace {

thread_local Feedback* in_use = nullptr;

// "f (file.py:12)", like code positions in graphs.
std::string name_of(PyObject* code) {
  if (!PyCode_Check(code)) return ((PyTypeObject*)code)->tp_name;
  const auto* const c = (PyCodeObject*)code;
  return std::string(utf8(c->co_qualname)) + " (" + utf8(c->co_filename) + ":" + std::to_string(c->co_firstlineno) +
         ")";
}

std::string line_of(PyObject* code, int instruction) {
  const auto* const c = (PyCodeObject*)code;
  constexpr int kUnitBytes = 2;  // an opcode and its argument
  const int line = PyCode_Addr2Line((PyCodeObject*)code, instruction * kUnitBytes);
  return std::string(utf8(c->co_qualname)) + " (" + utf8(c->co_filename) + ":" + std::to_string(line) + ")";
}

template <class Table>
int visit_keys(const Table& table, visitproc visit, void* arg) {
  for (const auto& [_, held] : table) Py_VISIT(held.first.get());
  return 0;
}

}  // namespace

Feedback* Feedback::current() { return in_use; }

UseFeedback::UseFeedback(Feedback& of)
    : around_(std::exchange(in_use, &of)), operators_around_(bridge::exchange_unpredictable(&of.unpredictable)) {}

UseFeedback::~UseFeedback() {
  in_use = around_;
  bridge::exchange_unpredictable(operators_around_);
}

size_t Feedback::size() const {
  size_t values = 0;
  for (const auto& [_, known] : specializations) values += known.values.size();
  return whole.size() + of_autograd.size() + users[0].known.size() + users[1].known.size() + values + growing.size() +
         did_more.size() + unpredictable.size();
}

std::vector<std::string> Feedback::texts() const {
  std::vector<std::string> out;
  for (const auto& [place, _] : whole) {
    const std::string what = place.kind == nullptr ? "the operator" : "the call of " + name_of(place.kind);
    out.push_back(what + " at " + line_of(place.code, place.instruction) + " is an opaque call");
  }
  for (const auto& [code, _] : of_autograd) out.push_back("autograd calls " + name_of(code) + " in each backward pass");
  for (const Users& use : users)
    for (const auto& [code, _] : use.known) out.push_back(name_of(code) + " uses autograd between two graph segments");
  for (const auto& [place, known] : specializations)
    out.push_back(name_of(place.first) + ": " + std::to_string(known.values.size()) +
                  " values of a number at one place");
  for (const auto& [object, known] : growing)
    if (known.second.closed)
      out.push_back(std::string("a ") + Py_TYPE(object)->tp_name + " in state grows: graph segments do not inspect it");
  for (const auto& [code, known] : did_more)
    out.push_back(name_of(code) + " did more than compute " + std::to_string(known.second) + " times");
  for (const std::string& op : unpredictable) out.push_back("sizes of " + op + " are specialized");
  return out;
}

// The old contents may run code at their destruction, which must find the tables empty.
void Feedback::clear() { const Feedback gone = std::exchange(*this, Feedback()); }

int Feedback::visit(visitproc visit, void* arg) const {
  for (const auto& [_, held] : whole) {
    Py_VISIT(held.first.get());
    Py_VISIT(held.second.get());
  }
  for (const auto* table : {&of_autograd, &users[0].known, &users[0].asked, &users[1].known, &users[1].asked})
    if (const int r = visit_keys(*table, visit, arg)) return r;
  for (const auto& [_, known] : specializations) {
    Py_VISIT(known.code.get());
    Py_VISIT(known.keeper.get());
  }
  if (const int r = visit_keys(growing, visit, arg)) return r;
  return visit_keys(did_more, visit, arg);
}

}  // namespace cresset::frontend

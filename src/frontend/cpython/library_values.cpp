#include "frontend/cpython/library_values.h"

#include <algorithm>

#include "frontend/cpython/py_objects.h"

namespace cresset::frontend {

bool is_one_of(PyObject* type, std::initializer_list<PyObject*> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

bool is_plain_type_parameter(PyObject* object) {
#if PY_VERSION_HEX >= 0x030C0000
  static PyObject *const one = module_attribute("typing", "TypeVar"),
                         *const many = module_attribute("typing", "TypeVarTuple"),
                         *const parameters = module_attribute("typing", "ParamSpec");
  if (!is_one_of((PyObject*)Py_TYPE(object), {one, many, parameters})) return false;
  const auto is_more = [](PyObject* held, void* type) -> int { return held != type ? 1 : 0; };
  return Py_TYPE(object)->tp_traverse(object, is_more, Py_TYPE(object)) == 0;
#else
  return (void)object, false;
#endif
}

bool is_library_value(PyObject* object) {
  static PyObject *const
      date = module_attribute("datetime", "date"),
      *const time = module_attribute("datetime", "time"), *const moment = module_attribute("datetime", "datetime"),
      *const span = module_attribute("datetime", "timedelta"), *const zone = module_attribute("datetime", "timezone"),
      *const decimal = module_attribute("decimal", "Decimal"), *const pattern = module_attribute("re", "Pattern"),
      *const match = module_attribute("re", "Match");
  return is_one_of((PyObject*)Py_TYPE(object), {date, time, moment, span, zone, decimal, pattern, match}) ||
         is_plain_type_parameter(object);
}

}  // namespace cresset::frontend

"""Containers in state, of builtin types, of the standard library and of derived classes, and expressions on them."""

import array
import collections
import collections.abc
import types


class ML(list):
    pass


class MD(dict):
    pass


class MS(set):
    pass


class MDQ(collections.deque):
    pass


class MOD(collections.OrderedDict):
    pass


class MT(tuple):
    pass


class ML2(list):
    def __len__(self):
        return super().__len__() + 10

    def __iter__(self):
        return iter(["z"])

    def __contains__(self, i):
        return True


class MD2(dict):
    def __getattr__(self, n):
        return self[n]

    def __setattr__(self, n, v):
        self[n] = v


class MU(collections.UserDict):
    pass


class MUL(collections.UserList):
    pass


class MSeq(collections.abc.Sequence):
    def __init__(s, v):
        s.v = v

    def __getitem__(s, i):
        return s.v[i]

    def __len__(s):
        return len(s.v)


class MMap(collections.abc.Mapping):
    def __init__(s, v):
        s.v = v

    def __getitem__(s, i):
        return s.v[i]

    def __len__(s):
        return len(s.v)

    def __iter__(s):
        return iter(s.v)


SEQ = {
    "list": list,
    "ML": ML,
    "ML2": ML2,
    "deque": collections.deque,
    "MDQ": MDQ,
    "tuple": tuple,
    "MT": MT,
    "UL": MUL,
    "MSeq": MSeq,
    "bytearray": bytearray,
    "array": lambda items: array.array("i", items),
}
MAPS = {
    "dict": dict,
    "MD": MD,
    "MD2": MD2,
    "OD": collections.OrderedDict,
    "MOD": MOD,
    "DD": lambda d: collections.defaultdict(int, d),
    "Counter": collections.Counter,
    "UD": MU,
    "MMap": MMap,
    "Chain": lambda d: collections.ChainMap({}, d),
    "proxy": lambda d: types.MappingProxyType(d),
}
SETS = {"set": set, "MS": MS, "fs": frozenset}
SEQR = [
    "c[0]",
    "c[-1]",
    "c[1]",
    "len(c)",
    "list(c)",
    "tuple(c)",
    "[i for i in c]",
    "[*c]",
    "sum(c)",
    "max(c)",
    "min(c)",
    "sorted(c)",
    "list(reversed(c))",
    "2 in c",
    "7 in c",
    "7 not in c",
    "c==[1,2,3]",
    "c!=type(c)([1,2,3])",
    "bool(c)",
    "1 if c else 2",
    "not c",
    "list(enumerate(c))",
    "list(zip(c,c))",
    "list(map(lambda i:i,c))",
    "list(filter(None,c))",
    "any(i>5 for i in c)",
    "all(c)",
    "any(c)",
    "str(c)",
    "repr(c)",
    "f'{c}'",
    "c.index(2)",
    "c.count(7)",
    "list(iter(c))",
    "next(iter(c))",
    "(lambda *a:a)(*c)",
    "(lambda a,b,d:a)(*c)",
    "set(c)",
    "dict(enumerate(c))",
    "[a for a,*b in [c]]",
    "list(itertools.chain(c,c))",
    "list(itertools.islice(c,2))",
    "list(itertools.product(c,[1]))",
    "functools.reduce(lambda a,b:a+b,c)",
    "copy.copy(c)",
    "copy.deepcopy(c)",
    "list(itertools.accumulate(c))",
    "math.prod(c)",
    "heapq.nlargest(1,c)",
    "bisect.bisect(sorted(c),2)",
    "'-'.join(map(str,c))",
    "'-'.join(str(i) for i in c)",
    "collections.Counter(c)['7']",
    "operator.getitem(c,0)",
    "operator.itemgetter(0,1)(c)",
    "c.__len__()",
    "c.__getitem__(0)",
    "c.copy()",
    "c.__contains__(7)",
    "torch.tensor(list(c))",
    "hash(tuple(c))",
    "c*2",
    "c+c",
    "c+type(c)([1])",
    "c<type(c)([5])",
    "json.dumps(list(c))",
    "list(itertools.repeat(c,1))[0][0]",
    "min(c,default=0)",
    "max(c,key=lambda i:-i)",
    "c[0:2]",
    "c[::-1]",
    "frozenset(c)",
    "bytes(c)",
    "isinstance(c,list)",
    "type(c)(c)",
    "dict.fromkeys(c)",
    "sum(c,10)",
    "sum(i*i for i in c)",
    "{i:1 for i in c}",
    "[i for i in c if i>2]",
    "random.Random(0).choice(list(c))",
    "c.__eq__([1,2,3])",
    "c.__iter__().__next__()",
    "list(c.__iter__())",
    "c.__class__.__name__",
    "c.__sizeof__()>0",
    "divmod(c[0],2)",
    "range(c[0])",
    "'%s'%c[0]",
    "'{}'.format(c)",
    "x.new_tensor(list(c))",
    "x[list(c)[0]%3]",
    "c and 3",
    "c or 3",
    "(c[0],)+(1,)",
    "slice(c[0],5)",
    "int(c[0])",
    "abs(c[0])",
    "pow(c[0],2)",
    "round(c[0]/3,1)",
    "complex(c[0])",
    "chr(c[0])",
    "bin(c[0])",
    "hex(c[0])",
    "float(c[0])",
    "bool(c[0]-1)",
    "str(c[0])",
    "callable(c)",
    "vars(w)['c'][0]",
    "w.__dict__['c'][0]",
    "dir(c)[0]",
    "dataclasses.is_dataclass(c)",
    "c.__reduce_ex__(2)[0].__name__",
    "pickle.loads(pickle.dumps(list(c)))",
    "len({*c})",
    "len([*c,*c])",
    "(lambda a=c:a[0])()",
    "getattr(c,'__len__')()",
    "c is w.c",
    "list(c)[c[0]%2]",
]
MAPR = [
    "c['a']",
    "c.get('a')",
    "c.get('b')",
    "c.get('zz',9)",
    "'a' in c",
    "'b' in c",
    "'zz' not in c",
    "len(c)",
    "list(c)",
    "list(c.keys())",
    "list(c.values())",
    "list(c.items())",
    "[k for k in c]",
    "[(k,v) for k,v in c.items()]",
    "dict(c)",
    "{**c}",
    "sorted(c)",
    "sorted(c.items())",
    "max(c.values())",
    "sum(c.values())",
    "max(c,key=c.get)",
    "min(c,key=lambda k:c[k])",
    "bool(c)",
    "1 if c else 2",
    "not c",
    "c=={'a':1,'k':2}",
    "c!={'a':1}",
    "str(c)",
    "repr(c)",
    "f'{c}'",
    "next(iter(c))",
    "next(iter(c.values()))",
    "list(reversed(c))",
    "(lambda **k:k)(**c)",
    "(lambda a,k=0,b=0:a)(**c)",
    "dict(c,z=1)",
    "dict(z=1,**c)",
    "c|{'z':1}",
    "{'z':1}|c",
    "copy.copy(c)",
    "copy.deepcopy(c)",
    "list(map(c.get,['a','b']))",
    "[c[k] for k in sorted(c)]",
    "'a' in c.keys()",
    "1 in c.values()",
    "('a',1) in c.items()",
    "c.keys()&{'a'}",
    "c.keys()-{'a'}",
    "c.items()>=set()",
    "set(c)",
    "tuple(c.items())",
    "list(zip(c,c.values()))",
    "list(enumerate(c))",
    "json.dumps(dict(c))",
    "'{a}'.format(**c)",
    "'%(a)s'%c",
    "c.__getitem__('a')",
    "c.__contains__('a')",
    "operator.itemgetter('a')(c)",
    "c.copy()",
    "c.keys()==c.keys()",
    "list(c.keys())[0]",
    "len(c.items())",
    "any(v>5 for v in c.values())",
    "all(c.values())",
    "{v:k for k,v in c.items()}",
    "isinstance(c,dict)",
    "type(c)(c)",
    "collections.ChainMap({},c)['a']",
    "collections.OrderedDict(c)",
    "types.SimpleNamespace(**c).a",
    "[*c]",
    "[*c.values()]",
    "functools.reduce(lambda a,b:a+b,c.values())",
    "list(filter(lambda k:c[k]>1,c))",
    "list(itertools.chain(c,c.values()))",
    "pickle.loads(pickle.dumps(dict(c)))",
    "c.items()==c.items()",
    "next(iter(c.items()))",
    "dict(c.items())",
    "dict(zip(c.keys(),c.values()))",
    "hash(frozenset(c.items()))",
    "sum(map(len,c))",
    "c['a'] if 'a' in c else 0",
    "c.setdefault('a',5) if isinstance(c,dict) else 0",
    "getattr(c,'get')('a')",
    "type(c).__getitem__(c,'a')",
    "dict.get(c,'a') if isinstance(c,dict) else 0",
    "dict.__getitem__(c,'a') if isinstance(c,dict) else 0",
    "dict.items(c) if isinstance(c,dict) else 0",
]
SETR = [
    "2 in c",
    "7 in c",
    "len(c)",
    "sorted(c)",
    "set(c)",
    "c|{9}",
    "c&{7}",
    "c-{1}",
    "c^{1}",
    "{7}|c",
    "c<={1,2,3}",
    "c>{1}",
    "c=={1,2,3}",
    "bool(c)",
    "not c",
    "max(c)",
    "sum(c)",
    "any(i>5 for i in c)",
    "frozenset(c)",
    "c.union([9])",
    "c.intersection([7])",
    "c.issubset({1,2,3})",
    "c.isdisjoint({7})",
    "str(sorted(c))",
    "copy.copy(c)",
    "{i*2 for i in c}",
    "len([*c])",
    "c.copy()",
    "[i in c for i in (1,7)]",
    "set.union(set(),c)",
    "hash(frozenset(c))",
    "{1}.issubset(c)",
    "{7}&c",
    "{7}.intersection(c)",
    "set().union(c,[1])",
    "{1,2,3}==c",
    "dict.fromkeys(sorted(c))",
    "tuple(sorted(c))",
    "list(filter(c.__contains__,[1,7]))",
    "[7,1].__contains__(7)==(7 in c)",
]

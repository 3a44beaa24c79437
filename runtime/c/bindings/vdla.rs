// A network that `vdla package --as static` or `--as shared` made, in Rust 1.82 or newer: a module
// of one file, without crates. The root of a program declares it by `mod vdla;`.
//
//     let mut net = vdla::open!(digits_open)?;  // of libdigits.a: rustc -L FOLDER -l static=digits
//     net.write("image", &[0f32; 64])?;         // each input, before each run
//     net.run()?;
//     for score in net.output::<f32>("logits")? { println!("{score}"); }
//
// An output is borrowed until the next input is written. Of the list y, list::<f32>("y") copies the
// elements; has("y") tells whether the optional output y is there. Elements are of Rust's type that
// has their bytes: bool is u8, float16 is u16. Threads may use several networks at once, and one
// network in turns.

#![allow(dead_code)]

use std::alloc::{alloc, dealloc, handle_alloc_error, Layout};
use std::ffi::{c_char, c_int, c_void, CStr};
use std::{collections::HashSet, error, fmt, ptr, slice};

/// Opens a network by NAME_open, a function of its library.
macro_rules! open {
    ($open:ident) => {{
        use std::ffi::{c_int, c_void};
        unsafe extern "C" {
            fn $open(memory: *mut c_void, bytes: usize, board: *const c_void, opened: *mut *mut c_void) -> c_int;
        }
        unsafe { $crate::vdla::Network::open($open, std::ptr::null()) }
    }};
}
pub(crate) use open;

/// What went wrong, in words.
pub struct Error(pub String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result { f.write_str(&self.0) }
}

impl fmt::Debug for Error {  // as main's result is shown
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result { f.write_str(&self.0) }
}

impl error::Error for Error {}

/// An input or output; where one output is a list, its shape begins with the length.
pub struct Info { pub name: String, pub dtype: &'static str, pub shape: Vec<usize> }

/// An element of a list, row-major.
pub struct Array<T> { pub shape: Vec<usize>, pub values: Vec<T> }

/// Types of elements, by their names in Python.
///
/// # Safety
/// They are as long as the name says, and any bytes are one.
pub unsafe trait Element: Copy { const NAME: &'static str; }

macro_rules! elements {
    ($($kind:ty = $name:literal),*) => { $(unsafe impl Element for $kind { const NAME: &'static str = $name; })* };
}
elements!(i8 = "int8", u8 = "uint8", i16 = "int16", u16 = "uint16", i32 = "int32", u32 = "uint32",
          i64 = "int64", u64 = "uint64", f32 = "float32", f64 = "float64");

const TYPES: [&str; 23] = [
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
    "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn", "int4", "uint4", "int2", "uint2",
]; // of enum vdla_type

#[repr(C)]
#[derive(Clone, Copy)]
struct Tensor {
    name: *const c_char, data: *mut c_void, bytes: usize, kind: u32, rank: u32,
    shape: [usize; 8], sizes: *const i64, is_list: u32,
}

impl Tensor {
    fn name(&self) -> String { unsafe { CStr::from_ptr(self.name) }.to_string_lossy().into() }
    fn shape(&self) -> &[usize] { &self.shape[..self.rank as usize] }
    fn info(&self) -> Info {
        Info { name: self.name(), dtype: TYPES[self.kind as usize], shape: self.shape().to_vec() }
    }
    fn stored(&self) -> &'static str {
        match self.kind { 9 | 12 => "uint16", 0 | 13.. => "uint8", kind => TYPES[kind as usize] }
    }
}

type Open = unsafe extern "C" fn(*mut c_void, usize, *const c_void, *mut *mut c_void) -> c_int;
const BAD_MEMORY: c_int = 4;

unsafe extern "C" {
    fn vdla_memory(net: *const c_void) -> usize;
    fn vdla_describe(net: *const c_void, description: *mut [u32; 6]) -> c_int;
    fn vdla_input(net: *mut c_void, number: u32, tensor: *mut Tensor) -> c_int;
    fn vdla_output(net: *mut c_void, number: u32, tensor: *mut Tensor) -> c_int;
    fn vdla_run(net: *mut c_void) -> c_int;
    fn vdla_error(net: *const c_void) -> *const c_char;
    fn vdla_start(net: *mut c_void, threads: u32) -> c_int;
    fn vdla_close(net: *mut c_void);
}

pub struct Network {
    net: *mut c_void,
    memory: (*mut u8, Layout),
    close: Option<unsafe extern "C" fn(*mut c_void)>,
    counts: [u32; 6],
    written: HashSet<String>,
    is_run: bool,
}

unsafe impl Send for Network {}

impl Drop for Network {
    fn drop(&mut self) {
        if let Some(close) = self.close { unsafe { close(self.net) } }
        unsafe { dealloc(self.memory.0, self.memory.1) }
    }
}

impl Network {
    /// Opens a network by NAME_open, with a `struct vdla_board` or null.
    ///
    /// # Safety
    /// The function is that of a package, and the board stays where it is.
    pub unsafe fn open(open: Open, board: *const c_void) -> Result<Network, Error> {
        let mut bytes = 4096;
        loop {
            let layout = Layout::from_size_align(bytes, 64).map_err(|e| Error(e.to_string()))?;
            let memory = unsafe { alloc(layout) };
            if memory.is_null() { handle_alloc_error(layout) }
            let mut net = Network { net: ptr::null_mut(), memory: (memory, layout), close: None,
                                    counts: [0; 6], written: HashSet::new(), is_run: false };
            let status = unsafe { open(memory.cast(), bytes, board, &mut net.net) };
            let wanted = unsafe { vdla_memory(net.net) };
            if status == BAD_MEMORY && wanted > bytes { bytes = wanted; continue }
            net.check(status)?;
            unsafe { vdla_describe(net.net, &mut net.counts) };
            return Ok(net);
        }
    }

    /// Has threads share the work, the caller's among them: once, and where the system has threads.
    pub fn start(&mut self, threads: u32) -> Result<(), Error> {
        self.check(unsafe { vdla_start(self.net, threads) })?;
        self.close = Some(vdla_close);
        Ok(())
    }

    pub fn inputs(&self) -> Vec<Info> { self.tensors(0).iter().map(Tensor::info).collect() }
    pub fn outputs(&self) -> Vec<Info> { self.tensors(1).iter().map(Tensor::info).collect() }

    /// Writes all elements of an input.
    pub fn write<T: Element>(&mut self, name: &str, values: &[T]) -> Result<(), Error> {
        let tensor = self.named(0, name, false)?[0];
        let count: usize = tensor.shape().iter().product();
        if values.len() != count || T::NAME != tensor.stored() {
            let (expected, actual) = (tensor.stored(), T::NAME);
            let found = values.len();
            return Err(Error(format!("input {name}: expected {expected}[{count}], found {actual}[{found}]")));
        }
        self.is_run = false;
        unsafe { ptr::copy_nonoverlapping(values.as_ptr(), tensor.data.cast(), count) };
        self.written.insert(name.into());
        Ok(())
    }

    pub fn run(&mut self) -> Result<(), Error> {
        if let Some(Info { name, .. }) = self.inputs().iter().find(|one| !self.written.contains(&one.name)) {
            return Err(Error(format!("input {name}: expected its elements before each run, found none")));
        }
        self.written.clear();
        self.check(unsafe { vdla_run(self.net) })?;
        self.is_run = true;
        Ok(())
    }

    /// Tells whether the last run gave an output: it may leave out an optional one.
    pub fn has(&self, name: &str) -> Result<bool, Error> {
        Ok(self.results(name, true)?.iter().any(|t| !t.data.is_null() || t.is_list != 0))
    }

    /// An output's elements, until an input is written.
    pub fn output<T: Element>(&self, name: &str) -> Result<&[T], Error> {
        let tensor = self.results(name, false)?[0];
        if !tensor.data.is_null() && tensor.is_list == 0 { return self.elements(&tensor); }
        let actual = if tensor.is_list != 0 { "a list" } else { "none" };
        Err(Error(format!("output {name}: expected an array, found {actual}")))
    }

    /// Copies of a list's elements, be they outputs y[0], y[1] … or in one output y.
    pub fn list<T: Element>(&self, name: &str) -> Result<Vec<Array<T>>, Error> {
        let mut made = Vec::new();
        for tensor in self.results(name, true)?.iter().filter(|tensor| !tensor.data.is_null()) {
            let (values, is_list) = (self.elements::<T>(tensor)?, tensor.is_list as usize);
            let (lengths, shape) = tensor.shape().split_at(is_list);
            let length = lengths.first().copied().unwrap_or(1);
            for n in 0..length {
                let mut kept = shape.to_vec();
                for axis in 0..if tensor.sizes.is_null() { 0 } else { shape.len() } {
                    kept[axis] = unsafe { *tensor.sizes.add(n * shape.len() + axis) } as usize;
                }
                let each = values.len() / length;
                let own = values[n * each..(n + 1) * each].iter().enumerate();
                let own = own.filter(|(at, _)| is_within(*at, shape, &kept));
                made.push(Array { values: own.map(|(_, value)| *value).collect(), shape: kept });
            }
        }
        Ok(made)
    }

    fn check(&self, status: c_int) -> Result<(), Error> {
        if status == 0 { return Ok(()); }
        Err(Error(unsafe { CStr::from_ptr(vdla_error(self.net)) }.to_string_lossy().into()))
    }

    /// Inputs, kind 0, or outputs, kind 1.
    fn tensors(&self, kind: usize) -> Vec<Tensor> {
        (0..self.counts[kind]).map(|n| {
            let mut tensor = unsafe { std::mem::zeroed() };
            unsafe { [vdla_input, vdla_output][kind](self.net, n, &mut tensor) };
            tensor
        }).collect()
    }

    /// The input or output of a name, or those of a list: y, or y[0], y[1] …
    fn named(&self, kind: usize, name: &str, lists: bool) -> Result<Vec<Tensor>, Error> {
        let all = self.tensors(kind);
        let is_in_list = |own: &str| own.strip_prefix(name).is_some_and(|place| {
            place.starts_with('[') && place.find(']') == Some(place.len() - 1)
        });
        let names: Vec<String> = all.iter().map(Tensor::name).collect();
        let made = all.iter().zip(&names).filter(|(_, own)| *own == name || lists && is_in_list(own));
        let made: Vec<Tensor> = made.map(|(tensor, _)| *tensor).collect();
        if !made.is_empty() { return Ok(made); }
        Err(Error(format!("{}: expected {}, found {name}", ["inputs", "outputs"][kind], names.join(", "))))
    }

    fn results(&self, name: &str, lists: bool) -> Result<Vec<Tensor>, Error> {
        if self.is_run { return self.named(1, name, lists); }
        Err(Error(format!("output {name}: expected a run after inputs are written, found none")))
    }

    fn elements<T: Element>(&self, tensor: &Tensor) -> Result<&[T], Error> {
        let (name, own) = (tensor.name(), tensor.stored());
        if T::NAME != own {
            return Err(Error(format!("output {name}: expected to be read as {own}, found {}", T::NAME)));
        }
        Ok(unsafe { slice::from_raw_parts(tensor.data.cast(), tensor.bytes / size_of::<T>()) })
    }
}

/// Whether element n of an array of some shape is among the first ones along each axis.
fn is_within(mut n: usize, shape: &[usize], kept: &[usize]) -> bool {
    shape.iter().zip(kept).rev().all(|(side, most)| { let at = n % side; n /= side; at < *most })
}

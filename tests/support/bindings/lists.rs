// Runs a network with lists and optional outputs, and calls it wrongly: what it prints is in
// tests/vdla/packaging/test_bindings.py.

mod vdla;

use vdla::{Error, Network};

fn show(shape: &[usize], values: &[f32]) {
    let sides: String = shape.iter().map(|side| format!("{side}x")).collect();
    let values: String = values.iter().map(|value| format!(" {value}")).collect();
    println!("{sides}{values}");
}

fn fail<T>(result: Result<T, Error>) {
    if let Err(error) = result { println!("{error}"); }
}

fn give(net: &mut Network, count: i64, flag: u8) -> Result<(), Error> {
    let rows: Vec<f32> = (0u8..12).map(f32::from).collect();
    net.write("rows", &rows)?;
    net.write("count", &[count])?;
    net.write("sizes", &[1i64, 2, 2, 1, 0, 2])?;
    net.write("flag", &[flag])
}

fn main() -> Result<(), Error> {
    let (mut net, mut second) = (vdla::open!(lists_open)?, vdla::open!(lists_open)?);
    second.start(2)?;
    for info in net.inputs() {
        print!("{} {} ", info.name, info.dtype);
        show(&info.shape, &[]);
    }
    fail(net.write("picture", &[0f32; 12]));
    fail(net.write("rows", &[0f32; 11]));
    fail(net.write("rows", &[0f64; 12]));
    fail(net.output::<f32>("plain"));
    fail(net.run());
    give(&mut net, 2, 0)?;
    net.run()?;
    let mut second = std::thread::spawn(move || {
        give(&mut second, 3, 1)?;
        second.run().map(|()| second)
    }).join().unwrap()?;
    fail(net.run());
    show(&[], net.output("plain")?);
    for name in ["each", "cut", "list", "empty", "maybe"] {
        for element in net.list(name)? { show(&element.shape, &element.values); }
    }
    for name in ["plain", "none", "maybe", "empty", "list"] { print!("{} ", net.has(name)? as u8); }
    println!("{}", second.has("maybe")? as u8);
    show(&[], second.output("maybe")?);
    fail(net.output::<f32>("none"));
    fail(net.output::<f32>("each"));
    fail(net.output::<f64>("plain"));
    fail(net.list::<f32>("lists"));
    fail(second.start(65));
    Ok(())
}

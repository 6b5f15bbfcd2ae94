//! What is refused, with the documented exit code and a message that names what is wrong: the commands of
//! `refusals.txt`.

use coldframe_toolbox::command::{done, refused, shipped, Folder};

/// The files that the commands read.
fn files() -> Folder {
    let files = Folder::new();
    let whole = std::fs::read(shipped("chess.parquet")).unwrap();
    files.write("cut.parquet", &whole[..whole.len() / 2]);
    files.write("junk.lk", "I  00001000,4\nI  zz001000,4\n");
    files.write("bad.toml", "policy = \"fifo\"\n[limit]\nskpi = 3\n");
    let head = "name = \"x\"\nkind = \"onenand\"\ntitle = \"\"\n";
    files.write("sheet.toml", format!("{head}[time]\nload = {{ value = \"-3us\", source = \"me\" }}\n"));
    files.write("swap.csv", "op,slot\nout,1\nout,x\n");
    files.write("good.csv", "ts_ns,op,slot,pid\n0,out,7,1\n20,in,7,1\n");
    files.write("broken.toml", done("generate phone --parameters").replace("seed = ", "sed = "));
    let pcm = include_str!("../../../../../data/sheets/lpddr2-pcm.toml");
    files.write("pcm.toml", pcm.replace("\"156.0mW\"", "\"-156.0mW\""));
    files.write("unknown.toml", pcm.replace("act =", "porosity ="));
    files.write("large.toml", "# Larger than its device.\n[swap]\nsize = \"2GiB\"\n");
    files
}

#[test]
fn bad_input_is_refused_by_name_with_the_documented_exit_code() {
    let files = files();
    let lines = include_str!("../refusals.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        let parts: Vec<&str> = line.splitn(3, " | ").collect();
        let &[code, message, command] = &parts[..] else { panic!("no code, message and command: {line}") };
        let word = |word: &str| match (word.strip_prefix("@@"), word.strip_prefix('@')) {
            (Some(file), _) => shipped(file),
            (None, Some(trace)) => shipped(&format!("{trace}.parquet")),
            (None, None) => word.replace('$', &files.at("")),
        };
        let command: Vec<String> = command.split(' ').map(word).collect();
        refused(&command.join(" "), code.parse().unwrap(), &message.split("; ").collect::<Vec<_>>());
    }
}

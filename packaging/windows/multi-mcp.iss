; Inno Setup 6: iscc /DVersion=0.1.0 /DBundle=FOLDER /DOut=FOLDER multi-mcp.iss (packaging/dev.py build does it).
; Installed for one user, without an administrator. The folder has no version in its name: what AI tools and start at
; login hold stays right after an update.

#ifndef Version
  #error Say /DVersion=, /DBundle= and /DOut=
#endif

#ifdef Signed
  #define Sign "signonce"
#else
  #define Sign ""
#endif

[Setup]
AppId={{5E0C1D0B-8C0E-4E0B-9C55-7B1D6A2F4E11}
AppName=multi-mcp
AppVersion={#Version}
AppVerName=multi-mcp {#Version}
AppPublisher=multi-mcp authors
VersionInfoVersion={#Version}
DefaultDirName={localappdata}\Programs\multi-mcp
DisableDirPage=yes
DisableProgramGroupPage=yes
PrivilegesRequired=lowest
ArchitecturesAllowed=x64compatible
ArchitecturesInstallIn64BitMode=x64compatible
MinVersion=10.0
CloseApplications=force
RestartApplications=no
ChangesEnvironment=yes
Compression=lzma2/max
SolidCompression=yes
LicenseFile=..\..\LICENSE
SetupIconFile={#Bundle}\..\..\icons\multi-mcp.ico
UninstallDisplayIcon={app}\multi-mcp-tray.exe
OutputDir={#Out}
OutputBaseFilename=multi-mcp-{#Version}-setup
#ifdef Signed
SignTool=signer
SignedUninstaller=yes
#endif

[Tasks]
Name: autostart; Description: "Start multi-mcp when I sign in"; Flags: unchecked
Name: path; Description: "Find the command multi-mcp in terminals (PATH)"

[InstallDelete]
; Libraries of the version before, which the new one may not have.
Type: filesandordirs; Name: "{app}\_internal"

[Files]
Source: "{#Bundle}\*.exe"; DestDir: "{app}"; Flags: ignoreversion {#Sign}
Source: "{#Bundle}\*"; Excludes: "\*.exe"; DestDir: "{app}"; Flags: recursesubdirs ignoreversion
Source: "{#Bundle}\..\..\texts\third-party.txt"; DestDir: "{app}"
Source: "..\..\LICENSE"; DestDir: "{app}"

[Icons]
Name: "{userprograms}\multi-mcp"; Filename: "{app}\multi-mcp-tray.exe"; AppUserModelID: "dev.multimcp.tray"

[Registry]
; Install links open the panel. Bundles, too, where the user chooses us: another program may be the usual one.
Root: HKCU; Subkey: "Software\Classes\multi-mcp"; ValueType: string; ValueData: "URL:multi-mcp"; Flags: uninsdeletekey
Root: HKCU; Subkey: "Software\Classes\multi-mcp"; ValueType: string; ValueName: "URL Protocol"; ValueData: ""
Root: HKCU; Subkey: "Software\Classes\multi-mcp\shell\open\command"; ValueType: string; ValueData: """{app}\multi-mcp.exe"" panel -- ""%1"""
Root: HKCU; Subkey: "Software\Classes\.mcpb\OpenWithProgids"; ValueType: string; ValueName: "multi-mcp.bundle"; ValueData: ""; Flags: uninsdeletevalue uninsdeletekeyifempty
Root: HKCU; Subkey: "Software\Classes\multi-mcp.bundle"; ValueType: string; ValueData: "MCP bundle"; Flags: uninsdeletekey
Root: HKCU; Subkey: "Software\Classes\multi-mcp.bundle\DefaultIcon"; ValueType: string; ValueData: "{app}\multi-mcp-tray.exe,0"
Root: HKCU; Subkey: "Software\Classes\multi-mcp.bundle\shell\open\command"; ValueType: string; ValueData: """{app}\multi-mcp.exe"" panel -- ""%1"""
Root: HKCU; Subkey: "Environment"; ValueType: expandsz; ValueName: "Path"; ValueData: "{code:PathWithUs}"; Tasks: path; Check: IsNotOnPath

[Run]
; By its own switch, which the menu and Task Manager show as well. Not ticked: what was switched on before stays on.
Filename: "{app}\multi-mcp.exe"; Parameters: "autostart on"; Flags: runhidden; Tasks: autostart
Filename: "{app}\multi-mcp-tray.exe"; Description: "Start multi-mcp"; Flags: nowait postinstall skipifsilent

[UninstallRun]
Filename: "{app}\multi-mcp.exe"; Parameters: "autostart off"; Flags: runhidden; RunOnceId: autostart

[Code]
const
  Separator = ';';

function UserPath: String;
begin
  if not RegQueryStringValue(HKCU, 'Environment', 'Path', Result) then
    Result := '';
end;

function IsNotOnPath: Boolean;
begin
  Result := Pos(Separator + Uppercase(ExpandConstant('{app}')) + Separator,
                Separator + Uppercase(UserPath) + Separator) = 0;
end;

function PathWithUs(Unused: String): String;
begin
  Result := UserPath;
  if (Result <> '') and (Result[Length(Result)] <> Separator) then
    Result := Result + Separator;
  Result := Result + ExpandConstant('{app}');
end;

procedure LeavePath;
var
  Before, Rest: String;
  At: Integer;
begin
  Before := Separator + UserPath + Separator;
  At := Pos(Separator + Uppercase(ExpandConstant('{app}')) + Separator, Uppercase(Before));
  if At = 0 then
    exit;
  Rest := Copy(Before, 1, At) + Copy(Before, At + Length(ExpandConstant('{app}')) + 2, Length(Before));
  Rest := Copy(Rest, 2, Length(Rest) - 2);
  RegWriteExpandStringValue(HKCU, 'Environment', 'Path', Rest);
end;

{ The gateway ends its servers in good order, then the tray its icon; what is left is closed by Setup itself. }
procedure EndOurs;
var
  Code: Integer;
begin
  if FileExists(ExpandConstant('{app}\multi-mcp.exe')) then
    Exec(ExpandConstant('{app}\multi-mcp.exe'), 'stop', '', SW_HIDE, ewWaitUntilTerminated, Code);
  Exec(ExpandConstant('{sys}\taskkill.exe'), '/IM multi-mcp-tray.exe /F', '', SW_HIDE, ewWaitUntilTerminated, Code);
end;

function PrepareToInstall(var NeedsRestart: Boolean): String;
begin
  EndOurs;
  Result := '';
end;

procedure CurUninstallStepChanged(Step: TUninstallStep);
var
  Code: Integer;
begin
  if Step = usUninstall then
  begin
    if not UninstallSilent then
      if MsgBox('Take multi-mcp out of the configuration of your AI tools as well?', mbConfirmation, MB_YESNO or MB_DEFBUTTON2) = IDYES then
        Exec(ExpandConstant('{app}\multi-mcp.exe'), 'disconnect --all', '', SW_HIDE, ewWaitUntilTerminated, Code);
    EndOurs;
    { Shims of AI tools that still run would keep the folder. }
    Exec(ExpandConstant('{sys}\taskkill.exe'), '/IM multi-mcp-shim.exe /F', '', SW_HIDE, ewWaitUntilTerminated, Code);
  end;
  if Step = usPostUninstall then
    LeavePath;
end;

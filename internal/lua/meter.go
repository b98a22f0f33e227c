package lua

import "github.com/yuin/gopher-lua/ast"

// The interpreter does not say when it makes a text by the operator .. , by which
// a few instructions can fill the memory. So every .. is rewritten, before a
// script is compiled, into the call of a function that counts.

func meterStatements(list []ast.Stmt) {
	for _, s := range list {
		meterStatement(s)
	}
}

func meterStatement(s ast.Stmt) {
	switch x := s.(type) {
	case *ast.AssignStmt:
		meterList(x.Lhs)
		meterList(x.Rhs)
	case *ast.LocalAssignStmt:
		meterList(x.Exprs)
	case *ast.FuncCallStmt:
		x.Expr = metered(x.Expr)
	case *ast.DoBlockStmt:
		meterStatements(x.Stmts)
	case *ast.WhileStmt:
		x.Condition = metered(x.Condition)
		meterStatements(x.Stmts)
	case *ast.RepeatStmt:
		x.Condition = metered(x.Condition)
		meterStatements(x.Stmts)
	case *ast.IfStmt:
		x.Condition = metered(x.Condition)
		meterStatements(x.Then)
		meterStatements(x.Else)
	case *ast.NumberForStmt:
		x.Init, x.Limit, x.Step = metered(x.Init), metered(x.Limit), metered(x.Step)
		meterStatements(x.Stmts)
	case *ast.GenericForStmt:
		meterList(x.Exprs)
		meterStatements(x.Stmts)
	case *ast.FuncDefStmt:
		meterStatements(x.Func.Stmts)
	case *ast.ReturnStmt:
		meterList(x.Exprs)
	}
}

func meterList(list []ast.Expr) {
	for i := range list {
		list[i] = metered(list[i])
	}
}

func metered(e ast.Expr) ast.Expr {
	switch x := e.(type) {
	case *ast.StringConcatOpExpr:
		name := &ast.IdentExpr{Value: concatName}
		call := &ast.FuncCallExpr{Func: name, Args: []ast.Expr{metered(x.Lhs), metered(x.Rhs)}, AdjustRet: true}
		for _, n := range []interface {
			SetLine(line int)
			SetLastLine(line int)
		}{name, call} {
			n.SetLine(x.Line())
			n.SetLastLine(x.LastLine())
		}
		return call
	case *ast.LogicalOpExpr:
		x.Lhs, x.Rhs = metered(x.Lhs), metered(x.Rhs)
	case *ast.RelationalOpExpr:
		x.Lhs, x.Rhs = metered(x.Lhs), metered(x.Rhs)
	case *ast.ArithmeticOpExpr:
		x.Lhs, x.Rhs = metered(x.Lhs), metered(x.Rhs)
	case *ast.UnaryMinusOpExpr:
		x.Expr = metered(x.Expr)
	case *ast.UnaryNotOpExpr:
		x.Expr = metered(x.Expr)
	case *ast.UnaryLenOpExpr:
		x.Expr = metered(x.Expr)
	case *ast.FuncCallExpr:
		x.Func, x.Receiver = metered(x.Func), metered(x.Receiver)
		meterList(x.Args)
	case *ast.FunctionExpr:
		meterStatements(x.Stmts)
	case *ast.TableExpr:
		for _, f := range x.Fields {
			f.Key, f.Value = metered(f.Key), metered(f.Value)
		}
	case *ast.AttrGetExpr:
		x.Object, x.Key = metered(x.Object), metered(x.Key)
	}
	return e
}
